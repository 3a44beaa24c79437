"""The whole Zynq design but the processing system: a program through its two ports, to the IRQ."""

import pytest
from amaranth import Module
from amaranth.lib.wiring import Component, In, Out
from amaranth.sim import Simulator

from vdla.boards import parts
from vdla.boards.soc import ps7, ps8
from vdla.boards.soc import zynq as soc
from vdla.hw.interfaces import axi4
from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import IDENTITY, register

CONFIG = load_config("tiny")
FROM, TO, STREAM = 0x1000, 0x2000, 0x4000
ENTRIES = 20
OUT_OF_RESET = 200e-9
DRAM = 0x0100_0000  # where the program's DRAM lies in the processor's
PROGRAM = f"""
LOAD memory=ACC dram_base={FROM} x_size={ENTRIES} y_size=1 z_size=1 push_prev
STORE pop_next memory=ACC dram_base={TO} x_size={ENTRIES} y_size=1 z_size=1
FINISH
"""


class NoProcessor(Component):
    """The ports of a processing system, for the bench to drive."""

    def __init__(self, registers):
        super().__init__(
            {
                "clock": Out(1),
                "reset_n": Out(1),
                "irq": In(1),
                "registers": Out(registers),
                "memory": In(axi4(CONFIG)),
            }
        )

    def elaborate(self, platform):
        return Module()


class Bench:
    """Clock, reset, a processor's reads and writes, and DRAM."""

    def __init__(self, processor, registers, monkeypatch):
        self.ps = NoProcessor(registers)
        monkeypatch.setitem(soc.SYSTEMS, processor.primitive, lambda config, hertz: self.ps)
        self.system = soc.System(CONFIG, processor, 100e6)
        self.base, self.memory = processor.registers, {}
        self.lanes = len(self.ps.registers.wdata) // 32
        self.done = False

    def run(self, program):
        simulator = Simulator(self.system)
        simulator.add_testbench(self.clock, background=True)
        for bench in (self.reads, self.writes):
            simulator.add_testbench(bench, background=True)
        simulator.add_testbench(program)
        simulator.run()

    async def clock(self, ctx):
        ticks = 0
        while True:
            ctx.set(self.ps.reset_n, ticks > 10)
            ctx.set(self.ps.clock, 1)
            await ctx.delay(5e-9)
            ctx.set(self.ps.clock, 0)
            await ctx.delay(5e-9)
            ticks += 1

    async def shake(self, ctx, bus, channel, mine, theirs, **fields):
        for name, value in fields.items():
            ctx.set(getattr(bus, channel + name), value)
        ctx.set(getattr(bus, channel + mine), 1)
        while True:
            taken = ctx.get(getattr(bus, channel + theirs))
            shown = {n: ctx.get(getattr(bus, channel + n)) for n in self.seen(bus, channel)}
            await ctx.tick()
            if taken:
                break
        ctx.set(getattr(bus, channel + mine), 0)
        return shown

    @staticmethod
    def seen(bus, channel):
        names = ("addr", "len", "id", "data", "strb", "last", "resp")
        return [name for name in names if hasattr(bus, channel + name)]

    async def read(self, ctx, name):
        bus, at = self.ps.registers, self.base + register(name).offset
        await self.shake(ctx, bus, "ar", "valid", "ready", addr=at, len=0, size=2, burst=1, id=3)
        shown = await self.shake(ctx, bus, "r", "ready", "valid")
        assert (shown["id"], shown["resp"], shown["last"]) == (3, 0, 1)
        return shown["data"] & 0xFFFF_FFFF

    async def write(self, ctx, name, value):
        bus, at = self.ps.registers, self.base + register(name).offset
        lane = (at >> 2) % self.lanes
        await self.shake(ctx, bus, "aw", "valid", "ready", addr=at, len=0, size=2, burst=1, id=4)
        await self.shake(
            ctx, bus, "w", "valid", "ready",
            data=value << 32 * lane, strb=0xF << 4 * lane, last=1,
        )  # fmt: skip
        shown = await self.shake(ctx, bus, "b", "ready", "valid")
        assert (shown["id"], shown["resp"]) == (4, 0)

    async def reads(self, ctx):
        bus = self.ps.memory
        await ctx.delay(OUT_OF_RESET)
        while True:
            asked = await self.shake(ctx, bus, "ar", "ready", "valid")
            for beat in range(asked["len"] + 1):
                at = asked["addr"] + beat * CONFIG.port_bytes
                data = int.from_bytes(
                    bytes(self.memory.get(at + i, 0) for i in range(CONFIG.port_bytes)), "little"
                )
                await self.shake(
                    ctx, bus, "r", "valid", "ready",
                    id=asked["id"], data=data, last=beat == asked["len"], resp=0,
                )  # fmt: skip

    async def writes(self, ctx):
        bus = self.ps.memory
        await ctx.delay(OUT_OF_RESET)
        while True:
            asked = await self.shake(ctx, bus, "aw", "ready", "valid")
            for beat in range(asked["len"] + 1):
                given = await self.shake(ctx, bus, "w", "ready", "valid")
                assert given["last"] == (beat == asked["len"])
                at = asked["addr"] + beat * CONFIG.port_bytes
                for i, byte in enumerate(given["data"].to_bytes(CONFIG.port_bytes, "little")):
                    self.memory[at + i] = byte
            await self.shake(ctx, bus, "b", "valid", "ready", id=asked["id"], resp=0)


@pytest.mark.parametrize(
    ("processor", "registers"),
    [(parts.ZYNQ_7000, ps7.REGISTERS), (parts.ULTRASCALE, ps8.REGISTERS)],
    ids=["zynq-7000", "ultrascale"],
)
def test_a_program_runs_from_register_to_interrupt(processor, registers, monkeypatch):
    bench = Bench(processor, registers, monkeypatch)
    data = bytes(7 * i % 251 for i in range(ENTRIES * CONFIG.acc_entry))
    program = assemble(PROGRAM, CONFIG)
    for start, content in ((FROM, data), (STREAM, program.stream())):
        bench.memory |= {DRAM + start + i: byte for i, byte in enumerate(content)}

    async def drive(ctx):
        await ctx.delay(OUT_OF_RESET)
        assert await bench.read(ctx, "ID") == IDENTITY
        isa, config = Identity.of(CONFIG).words
        for name, value in (
            ("PROGRAM_ISA", isa),
            ("PROGRAM_CONFIG", config),
            ("PROGRAM_BASE", STREAM),
            ("PROGRAM_LENGTH", len(program.instructions)),
            ("DRAM_BASE", DRAM),
            ("INTERRUPT_ENABLE", register("INTERRUPT_STATUS").field("DONE").mask),
            ("CONTROL", register("CONTROL").field("START").mask),
        ):
            await bench.write(ctx, name, value)
        for _ in range(4000):
            if ctx.get(bench.ps.irq):
                break
            await ctx.tick()
        assert ctx.get(bench.ps.irq)
        assert await bench.read(ctx, "STATUS") == register("STATUS").field("DONE").mask
        assert ctx.get(bench.system.status) == register("STATUS").field("DONE").mask

    bench.run(drive)
    assert bytes(bench.memory[DRAM + TO + i] for i in range(len(data))) == data
