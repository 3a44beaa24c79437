"""STORE's way into INP: where a config has ``forwarding``, beats may go there and not to the bus.

1. A beat that is offered to INP is written in a cycle in which LOAD doesn't write INP.
2. Places in INP are numbered by beats, as those in DRAM are. An entry has a power of two beats: so
   the low bits of a place are the beat's column, and the others the entry.
3. What lies beyond INP's last beat is a fault, and isn't written.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Value

from vdla.hw.bursts import is_outside
from vdla.hw.interfaces import Port
from vdla.hw.layout import beats
from vdla.isa.config import Config


@dataclass(frozen=True)
class ForwardPorts:
    """INP's write port, and who else writes it."""

    inp: Port  # interfaces.write_port
    taken: Value  # LOAD writes INP in this cycle


def is_outside_target(
    config: Config, place: Value, dram_pages: Value, forwards: Value | None
) -> Value:
    """Whether a beat at ``place`` lies outside DRAM; outside INP, if it ``forwards``."""
    outside = is_outside(place, config, dram_pages)
    if forwards is None:
        return outside
    return Mux(forwards, place >= config.depth("inp") * beats(config, "inp"), outside)


def write_inp(
    m: Module, config: Config, ports: ForwardPorts, place: Value, beat: Value, offered: Value
) -> Value:
    """Writes ``beat`` at ``place`` if it is ``offered`` and the port free; whether it does."""
    inp, columns = ports.inp, beats(config, "inp")
    bits = (columns - 1).bit_length()
    writes = offered & ~ports.taken
    m.d.comb += [
        inp.enable.eq(Mux(writes, 1 << place[:bits], 0)),
        inp.address.eq(place[bits:]),
        inp.data.eq(beat.replicate(columns)),
    ]
    return writes
