"""The core's AXI4 port on a board's memory: random bursts against a dictionary."""

from random import Random

import pytest
from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from vdla.boards.soc.axi import DECERR, OKAY, AxiMemory
from vdla.boards.soc.memory import Shared
from vdla.isa.config import load_config

AT_BITS = 10
CONFIG = load_config("tiny")
BEAT = CONFIG.port_bytes


class Bench:
    """An AXI manager, and a second user of the memory, on a memory that takes its time."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.axi = AxiMemory(CONFIG, AT_BITS)
        self.shared = Shared(AT_BITS, 8 * BEAT, 1)
        self.m = m = Module()
        m.submodules.axi, m.submodules.shared = self.axi, self.shared
        connect(m, self.axi.memory, self.shared.first)
        self.memory, self.over = {}, 0
        self.reads, self.answers, self.seen = [], [], set()

    def run(self, bursts, others):
        benches = [
            self._reads(bursts), self._writes(bursts), self._collect(), self._serve(),
            self._other(others),
        ]  # fmt: skip
        simulator = Simulator(self.m)
        simulator.add_clock(1e-6)
        for bench in benches:
            simulator.add_testbench(bench, background=bench in benches[2:4])
        simulator.run()
        assert not self.reads
        assert not self.answers

    # Addresses: reads, writes and the other user keep to a third of the memory each, so that the
    # order in which they are served doesn't matter.

    def _burst(self, third):
        size = (1 << AT_BITS) // 3
        count = self.random.choice((1, 2, 5, 16))
        beyond = self.random.random() < 0.15
        at = third * size + self.random.randrange(size - count)
        return (at + (1 << AT_BITS) if beyond else at), count, beyond

    def _reads(self, bursts):
        async def bench(ctx):
            bus = self.axi.bus
            for _ in range(bursts):
                at, count, beyond = self._burst(0)
                tag = self.random.randrange(2)
                ctx.set(bus.araddr, at * BEAT)
                ctx.set(bus.arlen, count - 1)
                ctx.set(bus.arid, tag)
                ctx.set(bus.arvalid, 1)
                self.reads += [
                    (tag, DECERR if beyond else OKAY, k == count - 1,
                     None if beyond else self.value(at + k))
                    for k in range(count)
                ]  # fmt: skip
                await self._until(ctx, bus.arready)
                ctx.set(bus.arvalid, 0)
                await self._pause(ctx)
            while self.reads:
                await ctx.tick()

        return bench

    def _writes(self, bursts):
        async def bench(ctx):
            bus = self.axi.bus
            for _ in range(bursts):
                at, count, beyond = self._burst(1)
                data = [self.random.getrandbits(8 * BEAT) for _ in range(count)]
                self.answers.append((DECERR if beyond else OKAY, at, data))
                ctx.set(bus.awaddr, at * BEAT)
                ctx.set(bus.awlen, count - 1)
                ctx.set(bus.awvalid, 1)
                if self.random.random() < 0.5:
                    await self._until(ctx, bus.awready)
                    ctx.set(bus.awvalid, 0)
                for k, value in enumerate(data):  # the address may go with any of them
                    ctx.set(bus.wdata, value)
                    ctx.set(bus.wlast, k == count - 1)
                    ctx.set(bus.wvalid, 1)
                    taken = False
                    while not taken:
                        taken, address = ctx.get(bus.wready), ctx.get(bus.awready)
                        await ctx.tick()
                        if address:
                            ctx.set(bus.awvalid, 0)
                    ctx.set(bus.wvalid, 0)
                    await self._pause(ctx)
            while self.answers:
                await ctx.tick()

        return bench

    def value(self, at):
        return self.memory.get(at, at * 2654435761 % (1 << 8 * BEAT))

    async def _until(self, ctx, ready):
        while not ctx.get(ready):
            await ctx.tick()
        await ctx.tick()

    async def _pause(self, ctx):
        while self.random.random() < 0.3:
            await ctx.tick()

    def _collect(self):
        async def bench(ctx):
            bus = self.axi.bus
            while True:
                if ctx.get(bus.rvalid):
                    found = tuple(ctx.get(v) for v in (bus.rid, bus.rresp, bus.rlast, bus.rdata))
                    wanted = self.reads.pop(0)
                    assert found[:3] == wanted[:3]
                    assert wanted[3] in (None, found[3])
                    self.seen.add(("read", found[1]))
                if ctx.get(bus.bvalid):
                    response, at, data = self.answers.pop(0)
                    assert ctx.get(bus.bresp) == response
                    self.seen.add(("write", response))
                    if response == OKAY:
                        assert [self.memory[at + k] for k in range(len(data))] == data
                await ctx.tick()

        return bench

    def _serve(self):
        async def bench(ctx):
            memory = self.shared.memory
            while True:
                ctx.set(memory.ready, self.random.random() < 0.3)
                if not (ctx.get(memory.valid) and ctx.get(memory.ready)):
                    await ctx.tick()
                    continue
                asked = (memory.at, memory.count, memory.write, memory.tag)
                at, count, write, tag = (ctx.get(v) for v in asked)
                await ctx.tick()
                ctx.set(memory.ready, 0)
                for k in range(count):
                    await self._pause(ctx)
                    last = k == count - 1
                    if write:
                        ctx.set(memory.write_ready, 1)
                        while not ctx.get(memory.write_valid):
                            await ctx.tick()
                        self.memory[at + k] = ctx.get(memory.write_data)
                        ctx.set(memory.done, last)
                        await ctx.tick()
                        ctx.set(memory.write_ready, 0)
                        ctx.set(memory.done, 0)
                    else:
                        ctx.set(memory.read_valid, 1)
                        ctx.set(memory.read_data, self.value(at + k))
                        ctx.set(memory.read_tag, tag)
                        ctx.set(memory.read_last, last)
                        await ctx.tick()
                        ctx.set(memory.read_valid, 0)

        return bench

    def _other(self, requests):
        async def bench(ctx):
            port = self.shared.second
            for number in range(requests):
                at, count = 2 * ((1 << AT_BITS) // 3) + self.random.randrange(300), 3
                write = number % 2
                ctx.set(port.valid, 1)
                ctx.set(port.write, write)
                ctx.set(port.at, at)
                ctx.set(port.count, count)
                await self._until(ctx, port.ready)
                ctx.set(port.valid, 0)
                done = 0
                while done < count:
                    if write:
                        ctx.set(port.write_data, number + done)
                        ctx.set(port.write_valid, 1)
                        done += ctx.get(port.write_ready)
                    elif ctx.get(port.read_valid):
                        assert ctx.get(port.read_data) == self.value(at + done)
                        done += 1
                    await ctx.tick()
                    ctx.set(port.write_valid, 0)

        return bench


@pytest.mark.parametrize("seed", range(5))
def test_random_bursts_of_two_users(seed):
    bench = Bench(seed)
    bench.run(bursts=60, others=40)
    assert bench.seen == {(kind, code) for kind in ("read", "write") for code in (OKAY, DECERR)}
