"""The core's states, and what depends on them: units, STATUS, the events of the interrupt.

    IDLE ── START → RUNNING ── fault, RESET → STOPPING ── no burst is open → IDLE
                           └── FINISH → IDLE

1. START takes effect in IDLE: the next cycle, the first of RUNNING, is cycle 0 of the program.
2. A fault in RUNNING goes before the program's end, and that before RESET.
3. In STOPPING the transfers in flight run to their end, and no burst is opened.
4. DONE and FAULT stay until the next START or RESET. A START along with RESET does nothing.
"""

from __future__ import annotations

from amaranth import Module, Signal, Value
from amaranth.lib import enum

from vdla.hw.core.faults import Faults
from vdla.hw.core.units import Units
from vdla.hw.interfaces import Fault
from vdla.isa.registers import register


class State(enum.Enum, shape=2):
    """State of the core."""

    IDLE = 0
    RUNNING = 1
    STOPPING = 2


class Control:
    """Drives ``state``, a Signal of State; starts and stops the units; reports to the registers."""

    def __init__(self, m: Module, units: Units, state: Signal, faults: Faults) -> None:
        self.m, self.units, self.state, self.faults = m, units, state, faults
        self.done = Signal()
        self.faulted = Signal()
        self.ran = Signal()  # in the last cycle
        self.awake = Signal()  # not IDLE; with few sinks, for the path of a request
        self.open = Signal()  # bursts may be: RUNNING, and a program for this core
        # The program's ends, by the names of their events.
        self.ends = {"DONE": Signal(name="ends"), "FAULT": Signal(name="fails")}
        self._govern()
        self._go_on()
        self._show()

    def _govern(self) -> None:
        """Permits of the units: idle, locked or stopped."""
        units, state = self.units, self.state
        self.m.d.comb += [
            units.fetch.idle.eq(state == State.IDLE),
            units.fetch.awake.eq(self.awake),
            units.csr.locked.eq(state != State.IDLE),
            units.dma.stop.eq(~self.open),
            units.store.stop.eq(~self.open),
        ]

    def _go_on(self) -> None:
        """To the next state."""
        m = self.m
        start, reset = (self._commanded(name) for name in ("START", "RESET"))
        with m.Switch(self.state):
            with m.Case(State.IDLE), m.If(start & ~reset):
                self._start()
            with m.Case(State.RUNNING):
                self._run(reset)
            with m.Case(State.STOPPING):
                self._stop()
        with m.If(reset):
            m.d.sync += [self.done.eq(0), self.faulted.eq(0)]
        m.d.sync += self.ran.eq(self.state == State.RUNNING)

    def _commanded(self, name: str) -> Value:
        """Whether the driver writes this bit of CONTROL."""
        return (self.units.csr.control & register("CONTROL").field(name).mask).any()

    def _start(self) -> None:
        m, csr = self.m, self.units.csr
        m.d.comb += self.units.counters.clear.eq(1)
        m.d.sync += [self.state.eq(State.RUNNING), self.awake.eq(1)]
        m.d.sync += self.open.eq(self.faults.allowed)
        m.d.sync += [self.done.eq(0), self.faulted.eq(0)]
        m.d.sync += [csr.fault_cause.eq(Fault.NONE), csr.fault_instruction.eq(0)]

    def _run(self, reset: Value) -> None:
        """Counts this cycle, until a fault, the program's end, or a reset."""
        m, units, state, faults = self.m, self.units, self.state, self.faults
        m.d.comb += [units.counters.cycle.eq(1), units.counters.causes.eq(~faults.occurs)]
        with m.If(faults.occurs):
            m.d.comb += self.ends["FAULT"].eq(1)
            m.d.sync += [state.eq(State.STOPPING), self.open.eq(0), self.faulted.eq(1)]
            m.d.sync += units.csr.fault_cause.eq(faults.cause)
        with m.Elif(units.fetch.finished):
            m.d.comb += self.ends["DONE"].eq(1)
            m.d.sync += [state.eq(State.IDLE), self.open.eq(0)]
            m.d.sync += [self.awake.eq(0), self.done.eq(1)]
        with m.Elif(reset):
            m.d.sync += [state.eq(State.STOPPING), self.open.eq(0)]

    def _stop(self) -> None:
        """Waits until the DMA is quiet."""
        m, units = self.m, self.units
        with m.If(self.ran & self.faulted):  # a cycle late, before anybody can ask
            m.d.sync += units.csr.fault_instruction.eq(self.faults.address)
        with m.If(units.dma.quiet):
            m.d.sync += [self.state.eq(State.IDLE), self.awake.eq(0)]

    def _show(self) -> None:
        """STATUS, and the events of INTERRUPT_STATUS."""
        m, csr, state = self.m, self.units.csr, self.state
        flags = {
            "RUNNING": state == State.RUNNING,
            "DONE": self.done,
            "FAULT": self.faulted,
            "STOPPING": state == State.STOPPING,
        }
        for bits in register("STATUS").bits:
            m.d.comb += csr.status[bits.low].eq(flags[bits.name])
        # A cycle later, when the counters have counted the last one.
        for bits in register("INTERRUPT_STATUS").bits:
            m.d.sync += csr.interrupt_status[bits.low].eq(self.ends[bits.name])
