"""Performance counters: the cycles of the program, and per engine what they went to.

1. A cycle is counted in the cycle after it; the counts keep until ``clear``.
2. Each counted cycle of an engine goes to one cause, so an engine's causes add up to the cycles
   (a fault's own cycle has no cause: docs/timing.md, section 9).
3. Counters of causes are 32 bits wide and wrap.
"""

from __future__ import annotations

from amaranth import Module, Signal
from amaranth.lib.wiring import Component, In, Out

from vdla.hw.interfaces import Cause
from vdla.isa.config import Config
from vdla.isa.registers import counter
from vdla.isa.ring import Engine, numbered


class Counters(Component):
    """``cycle`` counts one cycle, ``causes`` adds the engines' causes of that cycle."""

    def __init__(self, config: Config) -> None:
        self.engines = numbered(config)
        causes = {f"cause_{e.name.lower()}": In(Cause) for e in self.engines}
        counts = {counter(e, c).lower(): Out(32) for e in self.engines for c in Cause}
        super().__init__(
            {"clear": In(1), "cycle": In(1), "causes": In(1), "cycles": Out(64), **causes, **counts}
        )

    def elaborate(self, platform: object) -> Module:
        """One counter of cycles, and one per engine and cause; ``clear`` sets all of them to 0."""
        m = Module()
        # A cycle's causes, and whether they count, are told at its end: they are added in the next.
        cycle, self.counted = Signal(), Signal()
        m.d.sync += [cycle.eq(self.cycle), self.counted.eq(self.causes)]
        m.d.sync += self.cycles.eq(self.cycles + cycle)
        for engine in self.engines:
            self._count(m, engine)
        with m.If(self.clear):
            m.d.sync += [cycle.eq(0), self.counted.eq(0), self.cycles.eq(0)]
        return m

    def _count(self, m: Module, engine: Engine) -> None:
        now = getattr(self, f"cause_{engine.name.lower()}")
        for cause in Cause:
            name = counter(engine, cause).lower()
            count, here = getattr(self, name), Signal(name=f"{name}_here")
            m.d.sync += here.eq(now == cause)
            m.d.sync += count.eq(count + (here & self.counted))
            with m.If(self.clear):
                m.d.sync += count.eq(0)
