"""Forwarding: STORE's way into INP, where GEMM reads its results.

1. A beat that is offered to INP is written in a cycle in which LOAD doesn't write INP.
2. Places in INP are numbered by beats, as those in DRAM are. An entry has a power of two beats: so
   the low bits of a place are the beat's column, and the others the entry.
3. What lies beyond INP's last beat is a fault, and isn't written.
"""

from __future__ import annotations

from amaranth import Module, Mux, Value
from amaranth.lib.wiring import In, Member, Out

from vdla.hw.interfaces import write_port
from vdla.hw.layout import beats
from vdla.hw.store.destination import DestinationHooks
from vdla.isa.instructions import Mem
from vdla.isa.options.forwarding import OPTIONS


class IntoInp(DestinationHooks):
    """INP, at STORE's port ``inp``; ``inp_taken``: LOAD writes INP."""

    option, memory, flag = OPTIONS[0], Mem.INP, "forwards"

    def ports(self) -> dict[str, Member]:
        """INP's write port, and who else writes it."""
        config = self.config
        inp = write_port(config.depth("inp"), 8 * config.inp_entry, beats(config, "inp"))
        return {"inp": Out(inp), "inp_taken": In(1)}

    def is_beyond(self, place: Value) -> Value:
        """Whether a beat lies beyond INP's last."""
        return place >= self.config.depth("inp") * beats(self.config, "inp")

    def write(self, m: Module, place: Value, beat: Value, offered: Value) -> Value:
        """Writes the beat in its column if the port is free."""
        inp, columns = self.unit.inp, beats(self.config, "inp")
        bits = (columns - 1).bit_length()
        writes = offered & ~self.unit.inp_taken
        m.d.comb += [
            inp.enable.eq(Mux(writes, 1 << place[:bits], 0)),
            inp.address.eq(place[bits:]),
            inp.data.eq(beat.replicate(columns)),
        ]
        return writes
