"""Registers behind a processor's AXI port: every beat of every burst is answered, and legally."""

from random import Random

from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from vdla.boards.soc import ps7, ps8
from vdla.boards.soc.lite import DECERR, OKAY, SLVERR, ToLite
from vdla.hw.csr import Csr
from vdla.isa.config import load_config
from vdla.isa.registers import IDENTITY, VERSION, register

BASE = 0x4000_0000
FIXED, INCREMENT, WRAP = range(3)
ENABLE, EVENTS = register("INTERRUPT_ENABLE").offset, register("INTERRUPT_STATUS").offset
PROGRAM_BASE, DRAM_BASE = register("PROGRAM_BASE").offset, register("DRAM_BASE").offset


class Bench:
    """The adapter on the core's own registers, and a manager that checks the protocol."""

    def __init__(self, bus=ps7.REGISTERS, seed=0):
        self.random = Random(seed)
        self.m = m = Module()
        m.submodules.lite = self.dut = ToLite(bus, BASE)
        m.submodules.csr = self.csr = Csr(load_config("tiny"))
        connect(m, self.dut.registers, self.csr.bus)
        m.d.comb += [self.csr.id.eq(IDENTITY), self.csr.version.eq(VERSION)]
        self.bus = self.dut.bus
        self.lanes = len(self.bus.wdata) // 32

    def run(self, *benches):
        simulator = Simulator(self.m)
        simulator.add_clock(1e-6)
        for bench in benches:
            simulator.add_testbench(bench)
        simulator.run()

    async def pause(self, ctx):
        while self.random.random() < 0.3:
            await ctx.tick()

    async def shake(self, ctx, channel, **fields):
        """A transfer that the manager begins; what it shows stays until it is taken."""
        for name, value in {**fields, "valid": 1}.items():
            ctx.set(getattr(self.bus, channel + name), value)
        for _ in range(100):
            ready = ctx.get(getattr(self.bus, f"{channel}ready"))
            await ctx.tick()
            if ready:
                break
        else:
            raise AssertionError(f"{channel}: never taken")
        ctx.set(getattr(self.bus, f"{channel}valid"), 0)

    async def taken(self, ctx, channel, *fields):
        """A transfer that the adapter begins; what it shows stays until it is taken."""
        shown = None
        for _ in range(100):
            ready = self.random.random() < 0.6
            ctx.set(getattr(self.bus, f"{channel}ready"), ready)
            if ctx.get(getattr(self.bus, f"{channel}valid")):
                now = [ctx.get(getattr(self.bus, channel + name)) for name in fields]
                assert shown in (None, now), f"{channel} changed while it waited"
                shown = now
                if ready:
                    await ctx.tick()
                    ctx.set(getattr(self.bus, f"{channel}ready"), 0)
                    return now
            else:
                assert shown is None, f"{channel}valid fell"
            await ctx.tick()
        raise AssertionError(f"{channel}: never shown")

    async def read(self, ctx, address, length=1, kind=INCREMENT, size=2, identity=5):
        """The beats: data on the beat's lane, and answers."""
        await self.pause(ctx)
        await self.shake(
            ctx, "ar", addr=address, len=length - 1, size=size, burst=kind, id=identity
        )
        beats = []
        for number in range(length):
            found, data, answer, last = await self.taken(ctx, "r", "id", "data", "resp", "last")
            assert (found, last) == (identity, number == length - 1)
            words = {data >> 32 * lane & 0xFFFF_FFFF for lane in range(self.lanes)}
            assert len(words) == 1
            beats.append((words.pop(), answer))
        return beats

    async def write(
        self, ctx, address, words, kind=INCREMENT, size=2, identity=9, strobes=0xF, lanes=None
    ):
        """The answer. ``lanes``: where each beat's word is, on a wider bus."""
        await self.pause(ctx)
        await self.shake(
            ctx, "aw", addr=address, len=len(words) - 1, size=size, burst=kind, id=identity
        )
        for number, word in enumerate(words):
            await self.pause(ctx)
            lane = lanes[number] if lanes else 0
            await self.shake(
                ctx, "w", data=word << 32 * lane, strb=strobes << 4 * lane,
                last=number == len(words) - 1,
            )  # fmt: skip
        found, answer = await self.taken(ctx, "b", "id", "resp")
        assert found == identity
        return answer


def test_single_beats_reach_the_registers_and_ids_come_back():
    bench = Bench()

    async def drive(ctx):
        assert await bench.read(ctx, BASE, identity=0xABC) == [(IDENTITY, OKAY)]
        for value in (0x1234_5678, 0xFFFF_FFFF):
            assert await bench.write(ctx, BASE + PROGRAM_BASE, [value], identity=0xFED) == OKAY
            assert await bench.read(ctx, BASE + PROGRAM_BASE) == [(value, OKAY)]

    bench.run(drive)


def test_bursts_are_answered_beat_by_beat():
    bench = Bench()

    async def drive(ctx):
        assert await bench.read(ctx, BASE, 2) == [(IDENTITY, OKAY), (VERSION, OKAY)]
        assert await bench.read(ctx, BASE, 3, FIXED) == [(IDENTITY, OKAY)] * 3
        wrapped = await bench.read(ctx, BASE + 8, 4, WRAP)
        assert wrapped == [(0, OKAY), (0, OKAY), (IDENTITY, OKAY), (VERSION, OKAY)]
        start = register("PROGRAM_ISA").offset
        assert await bench.write(ctx, BASE + start, [1, 2, 3, 4]) == OKAY
        assert await bench.read(ctx, BASE + start, 4) == [(n, OKAY) for n in (1, 2, 3, 4)]
        assert await bench.write(ctx, BASE + start + 8, [5, 6, 7, 8], WRAP) == OKAY
        assert await bench.read(ctx, BASE + start, 4) == [(n, OKAY) for n in (7, 8, 5, 6)]
        assert len(await bench.read(ctx, BASE, 16)) == 16

    bench.run(drive)


def test_errors_belong_to_their_beats_and_a_write_answers_the_worst():
    bench = Bench()
    unknown = register("FAULT_INSTRUCTION").offset + 4
    last = 0x1000 - 4

    async def drive(ctx):
        beats = await bench.read(ctx, BASE + unknown - 4, 2)
        assert [answer for _, answer in beats] == [OKAY, SLVERR]
        beats = await bench.read(ctx, BASE + last, 2)
        assert [answer for _, answer in beats] == [SLVERR, DECERR]
        assert await bench.read(ctx, BASE - 4, 1) == [(0, DECERR)]
        assert await bench.write(ctx, BASE, [1]) == SLVERR  # ID is read only
        assert await bench.write(ctx, BASE + last, [0, 0]) == DECERR
        assert await bench.write(ctx, BASE + PROGRAM_BASE, [7]) == OKAY  # nothing lingers
        assert await bench.read(ctx, BASE + PROGRAM_BASE) == [(7, OKAY)]

    bench.run(drive)


def test_narrow_beats_move_the_bytes_that_they_name():
    bench = Bench()

    async def drive(ctx):
        at = BASE + PROGRAM_BASE
        assert await bench.write(ctx, at, [0x4433_2211]) == OKAY
        assert await bench.write(ctx, at + 2, [0x00AA_0000], size=0, strobes=0b0100) == OKAY
        assert await bench.read(ctx, at) == [(0x44AA_2211, OKAY)]
        # Four beats of a byte are four reads of one register.
        assert await bench.read(ctx, at, 4, size=0) == [(0x44AA_2211, OKAY)] * 4
        halves = await bench.read(ctx, BASE + 2, 2, size=1)
        assert halves == [(IDENTITY, OKAY), (VERSION, OKAY)]

    bench.run(drive)


def test_a_bus_of_128_bits_finds_its_lane():
    bench = Bench(ps8.REGISTERS)

    async def drive(ctx):
        start = BASE + register("PROGRAM_ISA").offset  # a multiple of 16
        assert await bench.write(ctx, start, [1, 2, 3, 4], lanes=range(4)) == OKAY
        assert await bench.read(ctx, start, 4) == [(n, OKAY) for n in (1, 2, 3, 4)]
        assert await bench.write(ctx, start + 12, [9], lanes=[3]) == OKAY
        assert await bench.read(ctx, start + 12, identity=0xFFFF) == [(9, OKAY)]
        for size in (3, 4):  # wider than a register
            assert await bench.read(ctx, start, 2, size=size) == [(0, SLVERR)] * 2
            assert await bench.write(ctx, start, [5, 6], size=size) == SLVERR
        assert await bench.read(ctx, start, 2) == [(1, OKAY), (2, OKAY)]

    bench.run(drive)


def test_reads_and_writes_at_once():
    bench = Bench(seed=3)
    random = Random(3)

    async def writes(ctx):
        for _ in range(60):
            count = random.randint(1, 4)
            start = BASE + register("PROGRAM_ISA").offset
            assert await bench.write(ctx, start, [random.getrandbits(32)] * count) == OKAY

    async def reads(ctx):
        for _ in range(60):
            assert (await bench.read(ctx, BASE, 2))[1] == (VERSION, OKAY)

    bench.run(writes, reads)


def test_a_manager_may_show_data_before_its_address():
    bench = Bench()

    async def data(ctx):
        await bench.shake(ctx, "w", data=0xBEEF, strb=0xF, last=1)

    async def address(ctx):
        await ctx.tick().repeat(10)
        await bench.shake(ctx, "aw", addr=BASE + PROGRAM_BASE, len=0, size=2, burst=1, id=1)
        assert await bench.taken(ctx, "b", "id", "resp") == [1, OKAY]
        assert await bench.read(ctx, BASE + PROGRAM_BASE) == [(0xBEEF, OKAY)]

    bench.run(data, address)
