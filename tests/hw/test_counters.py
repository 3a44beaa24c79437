"""Counters: each counted cycle goes to one cause per engine."""

from __future__ import annotations

from random import Random

from amaranth import Signal
from amaranth.sim import Simulator

from vdla.hw.core import core
from vdla.hw.counters import Counters
from vdla.isa.config import load_config
from vdla.isa.registers import Cause
from vdla.isa.ring import numbered

TINY = load_config("tiny")


def test_against_a_tally():
    counters, random = Counters(TINY), Random(0)
    expected = {(e, c): 0 for e in numbered(TINY) for c in Cause}

    def name(engine, cause):
        return f"{engine.name}_{cause.name}".lower()

    async def drive(ctx):
        cycles = 0
        for step in range(600):
            cycle, causes = random.random() < 0.8, random.random() < 0.9
            clear = step == 300
            ctx.set(counters.clear, clear)
            ctx.set(counters.cycle, cycle)
            ctx.set(counters.causes, cycle and causes)
            now = {engine: random.choice(list(Cause)) for engine in numbered(TINY)}
            for engine, cause in now.items():
                ctx.set(getattr(counters, f"cause_{engine.name.lower()}"), cause)
            await ctx.tick()
            cycles = 0 if clear else cycles + cycle
            for key in expected:
                hit = cycle and causes and now[key[0]] == key[1]
                expected[key] = 0 if clear else expected[key] + hit
        ctx.set(counters.cycle, 0)
        ctx.set(counters.causes, 0)
        ctx.set(counters.clear, 0)
        await ctx.tick()
        assert ctx.get(counters.cycles) == cycles > 0
        for key, count in expected.items():
            assert ctx.get(getattr(counters, name(*key))) == count > 0

    simulator = Simulator(counters)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()


def test_a_fault_ends_in_a_cycle_without_causes():
    """Causes add up to the cycles less one: docs/timing.md, section 9."""
    counters = Counters(TINY)

    async def drive(ctx):
        ctx.set(counters.cycle, 1)
        ctx.set(counters.causes, 1)
        for _ in range(5):
            await ctx.tick()
        ctx.set(counters.causes, 0)
        await ctx.tick()
        ctx.set(counters.cycle, 0)
        await ctx.tick()
        assert ctx.get(counters.cycles) == 6
        assert ctx.get(counters.load_busy) == ctx.get(counters.store_busy) == 5

    simulator = Simulator(counters)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()


def test_the_driver_reads_both_halves_of_the_cycles(monkeypatch):
    """No program of a test runs for 2**32 cycles: the counter begins there."""

    class Late(Counters):
        def __init__(self, config):
            super().__init__(config)
            self.cycles = Signal(64, init=0x1234_5679_8765_4321)

    monkeypatch.setattr(core, "Counters", Late)
    design, seen = core.Core(TINY), {}

    async def read(ctx):
        csr = design.units.csr
        seen["low"], seen["high"] = ctx.get(csr.cycles_low), ctx.get(csr.cycles_high)

    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(read)
    simulator.run()
    assert seen == {"low": 0x8765_4321, "high": 0x1234_5679}
