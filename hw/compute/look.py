"""LOOK: where GEMM is alone, a stage between F2 and READ, in which the next micro-op is known.

1. GEMM never holds: what is in LOOK is in READ in the next cycle.
2. So a micro-op in READ knows whether the next one accumulates into the same entry: then its write
   is left out, and that one's late read, too, whose operand is forwarded.
3. ``claims`` says so of the micro-op in READ, and what is read late in this cycle.
"""

from __future__ import annotations

from amaranth import Module, Value
from amaranth.lib import data

from vdla.hw.compute.back_end import chains
from vdla.hw.interfaces import Port
from vdla.hw.layout import valid_register


def look_ahead(m: Module, look: data.View) -> data.View:
    """The register READ behind LOOK."""
    read = valid_register(look.shape(), 1, "read")
    m.d.sync += read.eq(look)
    return read


def make_claims(m: Module, claims: Port, look: data.View, read: data.View, reads: Value) -> None:
    """Drives ``claims``, a port of interfaces.claims; ``reads``: ACC is read late in this cycle."""
    m.d.comb += [
        claims.reads.eq(reads),
        claims.will_read.eq(read.valid & read.late & ~read.chained),
        claims.will_write.eq(read.valid & ~read.null & ~chains(look)),
    ]
