"""Comparisons as flat tables, for CSV and pandas: a row for each layer and number of threads.

Columns: ``config``, ``memory_latency`` (cycles), ``layer``, ``vthreads``, ``macs``, ``dram_bytes``,
``compute_cycles``, ``memory_cycles``, ``bound_cycles``, ``cycles``, ``utilization`` (0 to 1); with
an energy table ``energy_uj``; and for each engine but GEMM's ``work_ENGINE`` and ``hidden_ENGINE``,
cycles with an instruction in flight, and those of them beside a GEMM.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vdla.support.errors import UserError

if TYPE_CHECKING:
    from pandas import DataFrame

Row = dict[str, object]
PLAIN = ("macs", "dram_bytes", "compute_cycles", "memory_cycles", "bound_cycles")
BY_THREADS = ("cycles", "utilization", "energy_uj")


def rows_of(
    config: str, latency: int, layers: Sequence[Mapping[str, Any]], vthreads: Sequence[int]
) -> Iterator[Row]:
    """The rows of a comparison.

    Args:
        config: the config's name.
        latency: cycles from a read request to its first beat.
        layers: the comparison's layers, as its JSON has them.
        vthreads: the numbers of virtual threads.
    """
    for layer in layers:
        for v in vthreads:
            row: Row = {"config": config, "memory_latency": latency, "layer": layer["name"]}
            row |= {"vthreads": v, **{name: layer[name] for name in PLAIN}}
            row |= {name: layer[name][str(v)] for name in BY_THREADS if name in layer}
            for engine, work in layer["work"][str(v)].items():
                row |= {f"work_{engine}": work["cycles"], f"hidden_{engine}": work["hidden"]}
            yield row


def csv_text(rows: Sequence[Row]) -> str:
    """Rows as CSV with a header, as RFC 4180 has it; columns that a row lacks are empty."""
    columns = dict.fromkeys(name for row in rows for name in row)
    file = io.StringIO()
    writer = csv.DictWriter(file, list(columns), restval="")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def data_frame(rows: Sequence[Row]) -> DataFrame:
    """Rows as a table of pandas.

    Raises:
        UserError: pandas isn't installed.
    """
    try:
        import pandas
    except ImportError:
        raise UserError("to_pandas: expected pandas, found none; pip install pandas") from None
    return pandas.DataFrame(list(rows))
