"""Numbers for arithmetic units, and the units at work."""

from __future__ import annotations

from amaranth.hdl import Fragment
from amaranth.sim import Simulator


def wrapped(value, bits):
    """The low bits of a number, as a signed one."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def near(random, bits):
    """A signed number, often one of an edge's neighbours."""
    edge = 1 << bits - 1
    if random.random() < 0.5:
        at = random.choice((-edge, edge - 1, 0, 1 << random.randrange(bits)))
        return wrapped(at + random.randint(-2, 2), bits)
    return random.randrange(-edge, edge)


def simulate(unit, drive, platform=None):
    """Runs a testbench on a unit to its end."""
    simulator = Simulator(Fragment.get(unit, platform))
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
