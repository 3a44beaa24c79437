"""Causes that each engine's cycles go to: causes go to the counters, and the counts to the
registers.

1. An engine that isn't idle names the cause itself.
2. An idle one waits for tokens if its queue holds an instruction (TOKEN). Else it waits for the
   program's end if fetch has put the last instruction (DRAIN), or for fetch (FETCH).
"""

from __future__ import annotations

from amaranth import Module, Mux, Value

from vdla.hw.core.units import Queues, Units
from vdla.hw.interfaces import Cause
from vdla.isa.config import Config
from vdla.isa.registers import counter
from vdla.isa.ring import Engine, numbered


class Causes:
    """Connects the engines and their ``queues`` to the counters, and these to the registers."""

    def __init__(self, m: Module, config: Config, units: Units, queues: Queues) -> None:
        self.m, self.units, self.queues = m, units, queues
        for engine in numbered(config):
            self._count(engine)
        self._show_cycles()

    def _count(self, engine: Engine) -> None:
        """Connects an engine's cause to its counters, and these to their registers."""
        counters, csr = self.units.counters, self.units.csr
        cause = getattr(counters, f"cause_{engine.name.lower()}")
        self.m.d.comb += cause.eq(self._cause(engine))
        for each in Cause:
            name = counter(engine, each).lower()
            self.m.d.comb += getattr(csr, name).eq(getattr(counters, name))

    def _cause(self, engine: Engine) -> Value:
        activity = self.units.engines[engine].activity
        no_instruction = Mux(self.units.fetch.dispatched, Cause.DRAIN, Cause.FETCH)
        waits = self.queues[engine].command.waiting
        return Mux(activity.idle, Mux(waits, Cause.TOKEN, no_instruction), activity.cause)

    def _show_cycles(self) -> None:
        counters, csr = self.units.counters, self.units.csr
        self.m.d.comb += [
            csr.cycles_low.eq(counters.cycles[:32]),
            csr.cycles_high.eq(counters.cycles[32:]),
        ]
