"""TAB: what is written is there for every lane, each at an index of its own."""

from __future__ import annotations

from random import Random

import pytest
from amaranth.sim import Simulator

from vdla.hw.options.tables import TablePads
from vdla.isa.config import load_config
from vdla.isa.options.tables import TABLE_RESULTS, tables

CONFIGS = {
    "one table": ("table_bytes=512",),
    "three tables": ("table_bytes=1536",),
    "twelve lanes": ("table_bytes=1024", "block_out=12", "block_in=12"),
}


@pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS)
def test_lanes_read_what_was_written(settings):
    """A write or a read in every cycle, or neither: then the lanes keep what they read."""
    config, random = load_config("tiny", settings), Random(3)
    pads = TablePads(config)
    depth, lanes = tables(config) * TABLE_RESULTS, range(config.block_out)
    ends = (0, TABLE_RESULTS - 1, depth - 1)
    written, shown = [0] * depth, [0] * config.block_out

    def index():
        return random.choice((*ends, random.randrange(depth)))

    async def drive(ctx):
        for _ in range(1500):
            what = random.choice(("write", "write", "read", "read", "nothing"))
            at, result = index(), random.randrange(-(1 << 15), 1 << 15)
            indices = [index() for _ in lanes]
            ctx.set(pads.write.enable, what == "write")
            ctx.set(pads.write.address, at)
            ctx.set(pads.write.data, result)
            ctx.set(pads.read.enable, what == "read")
            for lane in lanes:
                ctx.set(pads.read.index[lane], indices[lane])
            await ctx.tick()
            if what == "write":
                written[at] = result
            if what == "read":
                shown[:] = [written[i] for i in indices]
            assert [ctx.get(pads.read.data[lane]) for lane in lanes] == shown

    simulator = Simulator(pads)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
    assert len(set(written)) > 100
