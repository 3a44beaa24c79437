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
                self.reads += [
                    (tag, DECERR if beyond else OKAY, k == count - 1,
                     None if beyond else self.value(at + k))
                    for k in range(count)
                ]  # fmt: skip
                show(ctx, araddr=at * BEAT, arlen=count - 1, arid=tag, arvalid=1, of=bus)
                await until(ctx, bus.arready)
                show(ctx, arvalid=0, of=bus)
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
                show(ctx, awaddr=at * BEAT, awlen=count - 1, awvalid=1, of=bus)
                if self.random.random() < 0.5:
                    await until(ctx, bus.awready)
                    show(ctx, awvalid=0, of=bus)
                for k, value in enumerate(data):  # the address may go with any of them
                    show(ctx, wdata=value, wlast=k == count - 1, wvalid=1, of=bus)
                    taken = False
                    while not taken:
                        taken, address = await edge(ctx, bus.wready, bus.awready)
                        if address:
                            show(ctx, awvalid=0, of=bus)
                    show(ctx, wvalid=0, of=bus)
                    await self._pause(ctx)
            while self.answers:
                await ctx.tick()

        return bench

    def value(self, at):
        return self.memory.get(at, at * 2654435761 % (1 << 8 * BEAT))

    async def _pause(self, ctx):
        while self.random.random() < 0.3:
            await ctx.tick()

    def _collect(self):
        async def bench(ctx):
            bus = self.axi.bus
            beat = (bus.rvalid, bus.rid, bus.rresp, bus.rlast, bus.rdata)
            while True:
                *read, answered, response = await edge(ctx, *beat, bus.bvalid, bus.bresp)
                if read[0]:
                    wanted = self.reads.pop(0)
                    assert tuple(read[1:4]) == wanted[:3]
                    assert wanted[3] in (None, read[4])
                    self.seen.add(("read", read[2]))
                if answered:
                    expected, at, data = self.answers.pop(0)
                    assert response == expected
                    self.seen.add(("write", response))
                    if response == OKAY:
                        assert [self.memory[at + k] for k in range(len(data))] == data

        return bench

    def _serve(self):
        async def bench(ctx):
            port = self.shared.memory
            while True:
                ready = self.random.random() < 0.3
                show(ctx, ready=ready, of=port)
                asked = (port.valid, port.at, port.count, port.write, port.tag)
                valid, at, count, write, tag = await edge(ctx, *asked)
                if not (valid and ready):
                    continue
                show(ctx, ready=0, of=port)
                for k in range(count):
                    await self._pause(ctx)
                    if write:
                        await self._take(ctx, at + k, k == count - 1, tag)
                    else:
                        show(ctx, read_valid=1, read_data=self.value(at + k), read_tag=tag,
                             read_last=k == count - 1, of=port)  # fmt: skip
                        await ctx.tick()
                        show(ctx, read_valid=0, of=port)

        return bench

    async def _take(self, ctx, at, last, tag):
        port, valid = self.shared.memory, False
        show(ctx, write_tag=tag, of=port)
        while not ctx.get(port.write_valid):  # as the controller, which commands when it is there
            await ctx.tick()
        show(ctx, write_ready=1, done=last, of=port)
        valid, data = await edge(ctx, port.write_valid, port.write_data)
        assert valid
        self.memory[at] = data
        show(ctx, write_ready=0, done=0, of=port)

    def _other(self, requests):
        async def bench(ctx):
            port = self.shared.second
            for number in range(requests):
                at, count = 2 * ((1 << AT_BITS) // 3) + self.random.randrange(300), 3
                write = number % 2
                show(ctx, valid=1, write=write, at=at, count=count, of=port)
                await until(ctx, port.ready)
                show(ctx, valid=0, of=port)
                done = 0
                while done < count:
                    show(ctx, write_valid=write, write_data=number + done, of=port)
                    taken, given, data = await edge(
                        ctx, port.write_ready, port.read_valid, port.read_data
                    )
                    if given:
                        assert data == self.value(at + done)
                    done += taken if write else given
                show(ctx, write_valid=0, of=port)

        return bench


def show(ctx, of, **values):
    for name, value in values.items():
        ctx.set(getattr(of, name), value)


async def edge(ctx, *signals):
    """What signals are at the next clock edge."""
    return (await ctx.tick().sample(*signals))[2:]


async def until(ctx, ready):
    while not (await edge(ctx, ready))[0]:
        pass


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 2 else pytest.mark.long) for n in range(5)]
)
def test_random_bursts_of_two_users(seed):
    bench = Bench(seed)
    bench.run(bursts=60, others=40)
    assert bench.seen == {(kind, code) for kind in ("read", "write") for code in (OKAY, DECERR)}
