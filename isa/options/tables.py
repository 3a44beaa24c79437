"""Tables of functions: a memory TAB of 256 results a table, and TABLE, which looks them up.

TAB holds results of 16 bits, one for each int8, in entries of a port word; a LOAD writes a result a
cycle. TABLE gives each lane the result that the low 8 bits of its y name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vdla.isa.operations import AluOp, X
from vdla.isa.options.option import Expectations, Option, Parameter, Probes
from vdla.isa.scratchpads import Mem

if TYPE_CHECKING:
    from vdla.isa.config import Config

TABLE_RESULTS = 256  # of one table: one for each int8
RESULT_BYTES = 2
TABLE_BITS = 8  # the number of a table in TABLE's immediate, unsigned
TABLE_BYTES = TABLE_RESULTS * RESULT_BYTES

BYTES = Parameter(
    "table_bytes", "tables of functions, 256 results of 16 bits each; 0: none", high=1 << 17
)


def table_bytes(config: Config) -> int:
    """Bytes of TAB; 0 where the config has no such memory."""
    return BYTES.of(config)


def tables(config: Config) -> int:
    """Tables that TAB holds; 0 where the config has no such memory."""
    return table_bytes(config) // TABLE_BYTES


def results_per_word(config: Config) -> int:
    """Results of a table in one port word, which is an entry of TAB."""
    return config.port_bytes // RESULT_BYTES


def _checks(config: Config) -> Expectations:
    size = table_bytes(config)
    yield size % TABLE_BYTES == 0, f"table_bytes to be a multiple of {TABLE_BYTES}, found {size}"


TAB = Mem.define(
    5, "TAB", BYTES.name, lambda config: config.port_bytes, results=results_per_word
)  # fmt: skip
TABLE = AluOp.add(
    7, "TABLE", words="tab[n × 256 + (y & 255)], signed; n: the low 8 bits of imm, unsigned",
    x=X.NONE, y_from_acc=True, imm="table", memory=TAB.buffer,
)  # fmt: skip

OPTIONS = (
    Option(
        rank=1,
        title="tables",
        parameter=BYTES,
        checks=_checks,
        operations=(TABLE,),
        memories=(TAB,),
        reads={"ALU": (TAB.buffer,)},
        writes={"LOAD": (TAB.buffer,)},
        probes=Probes(  # in the first probe their buffer is the deepest
            (("e", {BYTES.name: 1 << 17}), ("b", {BYTES.name: 1 << 9})), "102e4511"
        ),
    ),
)
