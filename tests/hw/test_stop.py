"""The core is stopped in the middle of a program: by the driver, and by faults.

Whatever runs, AXI's rules hold, what was opened is ended soon, and the next program finds the core
as after power-up.
"""

from __future__ import annotations

from collections import deque
from random import Random

import numpy as np
import pytest
from amaranth.sim import Simulator

from vdla.hw.core import Core
from vdla.isa.asm import assemble
from vdla.isa.config import load_config
from vdla.isa.identity import Identity
from vdla.isa.registers import Fault, register
from vdla.sim.machine import simulate
from vdla.sim.stream import memory_image

TINY = load_config("tiny", ["memory.latency=9"])
BASE, DRAM, BUS_BASE = 0x2000, 0x4000, 0x70000
START, RESET = 1, 2
RUNNING, DONE, FAULT, STOPPING = 1, 2, 4, 8

PROGRAM = """
LOAD memory=UOP x_size=4 y_size=1 z_size=1
LOAD memory=ACC dram_base=0x100 x_size=40 y_size=1 z_size=1 push_next
LOAD memory=INP dram_base=0x300 x_size=100 y_size=1 z_size=1 pad_x1=9
ALU pop_prev alu_op=ADD uop_count=1 extent_0=30 dst_0=1 use_imm imm=3
ALU alu_op=MUL uop_count=1 extent_0=20 dst_0=1 use_imm imm=5 push_next
STORE pop_prev memory=ACC dram_base=0x1000 x_size=30 y_size=1 z_size=1
STORE memory=ACC8 dram_base=0x1fe0 x_size=16 y_size=2 y_stride=20 y_pitch=16 z_size=1
FINISH
"""

# STORE writes long bursts while ALU micro-ops with a y operand pass one a cycle for 2**20 cycles.
BUSY_ALU = """
STORE memory=ACC dram_base=0x1000 x_size=100 y_size=1 z_size=1
ALU alu_op=MUL uop_count=64 extent_0=128 extent_1=128 src_base=3 dst_base=60 dst_0=0
FINISH
"""


class Board:
    """The core with its memory, and a driver; ``cycle`` by ``cycle``."""

    def __init__(self, seed=0, *, steady=True, config=TINY):
        self.config = config
        self.core, self.random = Core(config), Random(seed)
        self.steady = steady
        self.reads, self.beats, self.answers = deque(), deque(), deque()
        self.bursts, self.shown, self.now = deque(), {}, 0

    def run(self, test):
        simulator = Simulator(self.core)
        simulator.add_clock(1e-6)

        async def testbench(ctx):
            self.ctx = ctx
            await test(self)

        simulator.add_testbench(testbench)
        simulator.run()

    async def tick(self):
        self._serve()
        await self.ctx.tick()
        self.now += 1

    def _serve(self):
        """The memory: always ready where it is steady, else with random delays."""
        get, put, bus = self.ctx.get, self.ctx.set, self.core.bus
        often = self.steady or self.random.random() < 0.5
        put(bus.arready, often)
        put(bus.awready, often)
        put(bus.wready, often)
        reads = self.reads and self.reads[0][0] <= self.now
        put(bus.rvalid, bool(reads))
        if reads:
            _, address, identity, last = self.reads.popleft()
            raw = self.memory[address : address + 4].tobytes()
            put(bus.rdata, int.from_bytes(raw, "little"))
            put(bus.rid, identity)
            put(bus.rlast, last)
        answers = self.answers and self.answers[0] <= self.now
        put(bus.bvalid, bool(answers))
        if answers:
            self.answers.popleft()
        for valid, ready, *payload in (
            (bus.arvalid, bus.arready, bus.araddr, bus.arlen, bus.arid),
            (bus.awvalid, bus.awready, bus.awaddr, bus.awlen),
            (bus.wvalid, bus.wready, bus.wdata, bus.wlast),
        ):
            now = [get(each) for each in payload] if get(valid) else None
            before = self.shown.get(id(valid))
            assert before is None or now == before
            self.shown[id(valid)] = None if get(ready) else now
        if get(bus.arvalid) and get(bus.arready):
            address, beats = get(bus.araddr) - BUS_BASE, get(bus.arlen) + 1
            at = self.now + 1 + self.config.memory.latency
            for i in range(beats):
                self.reads.append((at + i, address + 4 * i, get(bus.arid), i == beats - 1))
        if get(bus.awvalid) and get(bus.awready):
            self.bursts.append([get(bus.awaddr) - BUS_BASE, get(bus.awlen) + 1])
        if get(bus.wvalid) and get(bus.wready):
            self.beats.append((get(bus.wdata), get(bus.wlast)))
        while self.bursts and self.beats:
            burst = self.bursts[0]
            data, last = self.beats.popleft()
            self.memory[burst[0] : burst[0] + 4] = np.frombuffer(data.to_bytes(4, "little"), "u1")
            burst[:] = burst[0] + 4, burst[1] - 1
            assert last == (burst[1] == 0)
            if last:
                self.bursts.popleft()
                self.answers.append(self.now + 1 + self.config.memory.latency)

    async def write(self, name, value):
        put, bus = self.ctx.set, self.core.registers
        for port, data in ((bus.awaddr, register(name).offset), (bus.wdata, value)):
            put(port, data)
        for port, data in ((bus.wstrb, 15), (bus.awvalid, 1), (bus.wvalid, 1), (bus.bready, 1)):
            put(port, data)
        while not self.ctx.get(bus.awready):
            await self.tick()
        await self.tick()
        put(bus.awvalid, 0)
        put(bus.wvalid, 0)

    async def read(self, name):
        put, bus = self.ctx.set, self.core.registers
        put(bus.araddr, register(name).offset)
        put(bus.arvalid, 1)
        put(bus.rready, 1)
        while not self.ctx.get(bus.arready):
            await self.tick()
        await self.tick()
        put(bus.arvalid, 0)
        value = self.ctx.get(bus.rdata)
        await self.tick()
        return value

    async def start(self, text, identity=None):
        """Loads a program and starts it."""
        program = assemble(f".base {BASE:#x}\n{text}", self.config)
        self.memory = memory_image(program, DRAM)
        self.memory[0x100:BASE] = np.arange(BASE - 0x100) % 251
        self.instructions = program.instructions
        isa, config = (identity or Identity.of(self.config)).words
        for name, value in {
            "PROGRAM_ISA": isa,
            "PROGRAM_CONFIG": config,
            "PROGRAM_BASE": BASE,
            "PROGRAM_LENGTH": len(program.instructions),
            "DRAM_BASE": BUS_BASE,
            "DRAM_SIZE": DRAM,
            "CONTROL": START,
        }.items():
            await self.write(name, value)

    async def settle(self, most, state=0):
        """Waits until the core is at rest; nothing is open then, nor answered too late."""
        began = self.now
        while await self.read("STATUS") & (RUNNING | STOPPING):
            assert self.now - began < most, f"no rest after {most} cycles"
        assert await self.read("STATUS") == state
        assert not any((self.reads, self.beats, self.bursts, self.answers))

    async def run_whole(self):
        """A whole program leaves the simulator's DRAM; returns its cycles."""
        await self.start(PROGRAM)
        expected = self.memory.copy()
        simulate(self.config, self.instructions, expected, BASE)
        await self.settle(4000, DONE)
        np.testing.assert_array_equal(self.memory, expected)
        assert await self.read("FAULT_CAUSE") == Fault.NONE
        return await self.read("CYCLES_LOW")


@pytest.mark.parametrize("steady", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_reset_at_any_time(steady):
    board = Board(1, steady=steady)

    async def test(board):
        before = await board.run_whole()
        for cycles in range(3, 330, 70):
            await board.start(PROGRAM)
            for _ in range(cycles):
                await board.tick()
            await board.write("CONTROL", RESET)
            await board.settle(400)
        after = await board.run_whole()
        assert after == before or not steady

    board.run(test)


def test_a_reset_of_a_core_at_rest():
    async def test(board):
        await board.write("CONTROL", RESET)
        await board.settle(10)
        await board.run_whole()
        await board.write("CONTROL", RESET)
        await board.settle(10)

    Board().run(test)


FAULTS = {
    "opcode": ("LOAD x_size=0\nFINISH\nALU\nFINISH", Fault.ILLEGAL, 1),
    "LOAD from": (PROGRAM.replace("dram_base=0x300", "dram_base=0x4000"), Fault.ADDRESS, 2),
    "LOAD between beats": (PROGRAM.replace("dram_base=0x300", "dram_base=0x302"), Fault.ADDRESS, 2),
    "LOAD to": (PROGRAM.replace("pad_x1=9", "pad_x1=60 sram_base=100"), Fault.ADDRESS, 2),
    "ALU": (PROGRAM.replace("extent_0=30", "extent_0=30 dst_base=120"), Fault.ADDRESS, 3),
    "STORE from": (PROGRAM.replace("x_size=30", "x_size=30 sram_base=110"), Fault.ADDRESS, 5),
    "STORE between beats": (
        PROGRAM.replace("dram_base=0x1fe0", "dram_base=0x1fe1"),
        Fault.ADDRESS,
        6,
    ),
    "STORE to": (PROGRAM.replace("dram_base=0x1fe0", "dram_base=0x3fe0"), Fault.ADDRESS, 6),
}


@pytest.mark.parametrize("names", [
    ("opcode", "ALU", "STORE to"), pytest.param(tuple(FAULTS), marks=pytest.mark.long),
], ids=["some", "all"])  # fmt: skip
def test_a_fault_and_what_follows(names):
    """One after the other on one core: whatever went before, each is named and leaves nothing."""

    async def test(board):
        for text, fault, index in (FAULTS[name] for name in names):
            await board.start(text)
            await board.settle(4000, FAULT)
            assert await board.read("FAULT_CAUSE") == fault, text
            assert await board.read("FAULT_INSTRUCTION") == BASE + 32 * index, text
            await board.run_whole()

    Board(2, steady=False).run(test)


@pytest.mark.parametrize("word", [0, 1])
def test_every_bit_of_what_a_program_is_for_counts(word):
    """The instruction set is looked at first."""

    async def refused(board, identity):
        expected = (Fault.PROGRAM_ISA, Fault.PROGRAM_CONFIG)[word]
        await board.start("FINISH", identity)
        await board.settle(100, FAULT)
        assert await board.read("FAULT_CAUSE") == expected

    async def test(board):
        for bit in (0, 1, 7, 15, 16, 22, 31):
            words = list(Identity.of(TINY).words)
            words[word] ^= 1 << bit
            await refused(board, Identity.of_words(*words))
            await refused(board, Identity.of_words(words[0], words[1] ^ 5))
            assert await board.read("CYCLES_LOW") == 1
            assert await board.read("FAULT_INSTRUCTION") == BASE
            await board.start("FINISH")
            await board.settle(1000, DONE)

    Board().run(test)


def test_a_read_buffer_that_holds_one_burst():
    """The burst is asked for when the buffer is empty: exactly as much as there is room for."""

    async def test(board):
        await board.run_whole()

    Board(config=load_config("tiny", ["memory.latency=9", "read_buffer_beats=16"])).run(test)


def test_micro_ops_do_not_keep_the_core_from_stopping():
    """They would read ACC's second port in every cycle, and STORE's open burst needs it."""

    async def test(board):
        await board.start(BUSY_ALU)
        for _ in range(150):
            await board.tick()
        assert await board.read("STATUS") == RUNNING
        await board.write("CONTROL", RESET)
        await board.settle(400)
        await board.run_whole()

    Board().run(test)
