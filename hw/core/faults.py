"""The core's faults: the first of a cycle, its cause, and the address of its instruction.

1. Each unit says in every cycle whether it has a fault, and of which instruction. The first of them
   counts in the order fetch, the engines along the ring, bus (docs/timing.md, section 9).
2. Before all of them comes a program that isn't for this core, or that has no instructions. It is
   refused at its first instruction.
3. A bad read belongs to LOAD or to fetch, as the DMA says; a bad answer to the oldest store that
   has sent everything, else to the one that sends.
"""

from __future__ import annotations

from typing import NamedTuple

from amaranth import Const, Module, Mux, Signal, Value

from vdla.hw.core.units import Units
from vdla.hw.interfaces import Fault
from vdla.hw.layout import scaled
from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes
from vdla.isa.registers import INDEX_BITS

FAULTS = ("request_fault", "fault", "burst_fault")  # an engine's ports that say so, in their order


class Source(NamedTuple):
    """A fault that may occur in a cycle."""

    valid: Value  # it occurs
    cause: Value | Fault
    index: Value | None  # number of the instruction; None: the program's first


class Faults:
    """``occurs``: this cycle has a fault, of that ``cause``; ``address``, a cycle later: its
    instruction's place in bytes from DRAM_BASE. ``allowed``: the program is for this core.
    """

    def __init__(self, m: Module, config: Config, units: Units) -> None:
        self.m, self.units = m, units
        self.allowed = Signal()
        self.occurs = Signal(name="found")
        self.cause = Signal(Fault, name="found_cause")
        sources = self._in_order(self._refused())
        self._choose(sources)
        index = self._index(sources)
        self.address = units.csr.program_base + scaled(index, instruction_bytes(config))

    def _refused(self) -> Value:
        """Checks what the program was compiled for; the cause, if that isn't this core."""
        csr = self.units.csr
        isa_fits, config_fits = Signal(), Signal()
        of_isa = csr.program_isa == csr.isa_hash
        of_config = csr.program_config == csr.config_hash
        # Registers don't change from START on, so one cycle earlier is as good.
        self.m.d.sync += [
            isa_fits.eq(of_isa),
            config_fits.eq(of_config),
            self.allowed.eq(of_isa & of_config & (csr.program_length != 0)),
        ]
        refused = Mux(config_fits, Fault.ILLEGAL, Fault.PROGRAM_CONFIG)
        return Mux(isa_fits, refused, Fault.PROGRAM_ISA)

    def _in_order(self, refused: Value) -> list[Source]:
        """All sources of faults, of which the first counts."""
        dma, fetch, store = self.units.dma, self.units.fetch, self.units.store
        load, units = self.units.load, [fetch.fault]
        for engine in self.units.engines.values():
            units += [getattr(engine, name) for name in FAULTS if hasattr(engine, name)]
        of_load, of_answer = dma.read_error & dma.error_load, dma.write_error & store.waits
        return [
            Source(~self.allowed, refused, None),
            *(Source(unit.valid, unit.cause, unit.index) for unit in units),
            Source(of_load, Fault.BUS, load.fault.index),
            Source(dma.read_error, Fault.BUS, fetch.fault.index),
            Source(of_answer, Fault.BUS, store.oldest),
            Source(dma.write_error, Fault.BUS, store.burst_fault.index),
        ]

    def _choose(self, sources: list[Source]) -> None:
        """The first fault's cause: what comes first is assigned last."""
        for source in reversed(sources):
            with self.m.If(source.valid):
                self.m.d.comb += [self.occurs.eq(1), self.cause.eq(source.cause)]

    def _index(self, sources: list[Source]) -> Value:
        """A cycle later, the number of the first fault's instruction.

        Each number is kept if it is the one, else zero: an OR is smaller than a choice of so many.
        """
        m = self.m
        numbers = {id(s.index): s.index for s in sources if s.index is not None}
        kept: Value = Const(0, INDEX_BITS)
        for number in numbers.values():
            other, one = Signal(init=1), Signal.like(number, name="one", reset_less=True)
            for source in reversed(sources):
                with m.If(source.valid):
                    m.d.comb += other.eq(source.index is not number)
            m.d.sync += one.eq(Mux(other, 0, number))
            kept |= one
        return kept
