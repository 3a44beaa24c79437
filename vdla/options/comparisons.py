"""Options of ``compare``, ``sweep`` and ``offload``.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.options import fields
from vdla.options.common import Progress, Sized, progress
from vdla.options.spelling import UsageError, option

if TYPE_CHECKING:
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
    from vdla.isa.config import Config


@dataclass(frozen=True)
class Compare(Sized):
    """Options of a comparison: schedules for some numbers of virtual threads, on a config.

    ``energy`` names the table by which the energy of each layer is estimated; none by default.
    ``host`` is the processor whose time is modelled for what the accelerator leaves, "native" this
    machine's. ``side_by_side`` takes several configs, each other function one.
    """

    config: str | Path | Config | Sequence[str | Path | Config] | None = fields.configs(
        "A config's name or file; default: paper, or the board's. Twice or more: designs side by "
        "side."
    )
    vthreads: Sequence[int] = fields.vthreads((1, 2))
    settings: Sequence[str] = fields.settings()
    records: str | Path | TileRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    latencies: Sequence[int] = option(
        (),
        "--latency",
        typed=str | None,
        shown=None,
        read=partial(fields.listed, "--latency", 0, None),
        metavar="N,N,…",
        help="Sweep over memory latencies, in cycles; schedules are chosen anew at each.",
    )
    energy: str | None = fields.energy()
    board: str | None = fields.board("In front of this board's memory.")
    host: str = fields.modelled_host()
    progress: Progress = progress()

    @property
    def several(self) -> tuple[str | Path | Config, ...]:
        """The configs where more than one is given; empty elsewhere."""
        given = self.config
        return tuple(given) if isinstance(given, list | tuple) and len(given) > 1 else ()

    @property
    def one(self) -> str | Path | Config | None:
        """The only config.

        Raises:
            UsageError: there are several.
        """
        if self.several:
            raise UsageError(
                f"--config: expected one config, found {len(self.several)}; vdla.side_by_side, and "
                "vdla compare without --latency and --same-schedule, compare several"
            )
        given = self.config
        return given[0] if isinstance(given, list | tuple) and given else given  # type: ignore[return-value]


@dataclass(frozen=True)
class CompareOutput:
    """Outputs of ``vdla compare`` beside the table, and where it writes them."""

    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for the plots and the trace.")
    formats: Sequence[str] = fields.formats()
    trace_layer: str = option(
        "", "--trace-layer", typed=str, help="The layer to trace; default: the first."
    )
    same_schedule: bool = option(
        False,
        "--same-schedule",
        typed=bool,
        help="Also the schedule of the most threads by itself: serialized by tokens, with one "
        "engine alone, and with threads and buffer copies apart.",
    )
    report: Path | None = option(
        None,
        "--report",
        typed=Path | None,
        metavar="OUT.html",
        help="Write one page that opens offline.",
    )
    csv: Path | None = option(
        None,
        "--csv",
        typed=Path | None,
        metavar="OUT.csv",
        help="Write a row for each layer, number of threads, and latency or config.",
    )


@dataclass(frozen=True)
class Offload(Sized):
    """Machine that a network is put on: a ``board``, with its processor and a config in its fabric.

    ``config`` and ``records`` are as for ``compile``.
    """

    board: str = fields.board("Its processor, its memory, its clock.", needed=True)
    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: the board's."
    )
    settings: Sequence[str] = fields.settings()
    records: str | Path | TileRecords | None = fields.records()
    shapes: Shapes | None = fields.shapes()
    progress: Progress = progress()


@dataclass(frozen=True)
class OffloadOutput:
    """Folder and formats of the picture of ``vdla offload``."""

    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for the picture.")
    formats: Sequence[str] = fields.formats()
