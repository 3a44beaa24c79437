"""COMPUTE or VECTOR alone: random streams against the simulator, and the rules by hand.

For the simulator a stream is loaded, with all that it works on, before its first instruction may
start: from there on COMPUTE waits for nothing but itself, and its cycles can be told from those of
the other engines. Cycles are counted from the first start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from amaranth import Module, Mux, ResetInserter, Signal
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from planting import plant

from vdla.hw.compute import Compute, combine
from vdla.hw.options.tables import TablePads
from vdla.isa.config import load_config
from vdla.isa.instructions import (
    Alu,
    AluOp,
    Finish,
    Gemm,
    Init,
    Load,
    Mem,
    Uop,
    operations,
)
from vdla.isa.numbers import pack_scale
from vdla.isa.operations import X
from vdla.isa.options.tables import tables
from vdla.isa.registers import Cause, Fault
from vdla.isa.ring import Engine, ring_of
from vdla.sim.machine import run_functional
from vdla.sim.stream import Stream
from vdla.sim.timing import Clock

CONFIGS = {
    "tiny": load_config("tiny", ["command_queue=64"]),
    # 16 × 8, two micro-ops in a word, no depth a power of two
    "not square": load_config(
        "tiny",
        [
            "block_in=16", "block_out=8", "port_bytes=8", "memory.bytes_per_cycle=8",
            "inp_bytes=1520", "wgt_bytes=7424", "acc_bytes=3040", "uop_bytes=1000",
            "command_queue=64",
        ],
    ),
    "with tables": load_config("tiny", ["table_bytes=1536"]),
    "with reciprocals": load_config("tiny", ["reciprocal_units=4"]),
    "with two rows": load_config(
        "tiny", ["block_in=8", "wgt_bytes=4096", "window_taps=2", "window_rows=2"]
    ),
}  # fmt: skip
TINY = CONFIGS["tiny"]
VECTOR = {
    name: config.override(["vector_engine=1"])
    for name, config in CONFIGS.items() if name != "tiny"
}  # fmt: skip
BUFFERS = ("uop", "inp", "wgt", "acc")  # and TAB behind them, where there is one
EARLY = [op for op in AluOp if op.x is X.EARLY]
PATIENCE = 12  # cycles after the last finish: nothing may follow


# The machine under test -----------------------------------------------------------------------


@dataclass
class Seen:
    """What COMPUTE did, cycle by cycle from the first start."""

    start: list[int] = field(default_factory=list)
    finish: list[int] = field(default_factory=list)
    pushed: list[tuple[int, int]] = field(default_factory=list)
    causes: list[Cause | None] = field(default_factory=list)
    held: int = 0  # cycles in which a y waited for STORE
    writes: list[tuple[int, int]] = field(default_factory=list)  # cycle, entry
    fault: tuple[Fault, int, int] | None = None  # what, instruction, cycle
    acc: np.ndarray | None = None


def buffers_of(config):
    return (*BUFFERS, "tab") if tables(config) else BUFFERS


class Harness:
    """COMPUTE, or VECTOR, with its memories; runs one stream after the other."""

    def __init__(self, config, engine=Engine.COMPUTE):
        self.config, self.compute, self.reset = config, Compute(config, engine), Signal()
        self.memories = {}

    def run(self, test):
        m = Module()
        m.submodules.compute = ResetInserter(self.reset)(self.compute)
        for name in BUFFERS:
            if name != "acc" and not hasattr(self.compute, name):
                continue
            shape = 8 * self.config.entry(name)
            memory = Memory(shape=shape, depth=self.config.depth(name), init=[])
            m.submodules[name] = self.memories[name] = memory
            names = ("acc_x", "acc_y") if name == "acc" else (name, f"{name}_second")
            names = [n for n in names if hasattr(self.compute, n)]
            for name in names:
                port, outer = memory.read_port(), getattr(self.compute, name)
                taken = Signal()  # STORE took the port: what comes is STORE's
                if name == "acc_y":
                    m.d.sync += taken.eq(self.compute.acc_y_taken)
                m.d.comb += [
                    port.en.eq(outer.enable),
                    port.addr.eq(outer.address),
                    outer.data.eq(Mux(taken, ~port.data, port.data)),
                ]
        port, outer = self.memories["acc"].write_port(), self.compute.acc_write
        m.d.comb += [
            port.en.eq(outer.enable),
            port.addr.eq(outer.address),
            port.data.eq(outer.data),
        ]
        if hasattr(self.compute, "tab"):
            m.submodules.tab = tab = TablePads(self.config)
            connect(m, self.compute.tab, tab.read)
            self.tab = tab.write
        simulator = Simulator(m)
        simulator.add_clock(1e-6)
        simulator.add_testbench(test)
        simulator.run()

    async def program(self, ctx, instructions, contents, ready=lambda: True, taken=lambda: False):
        """Runs a stream to its end, or to its fault; ``contents`` are bytes of the memories.

        ``ready`` and ``taken`` are asked in every cycle: whether the next instruction may start,
        and whether STORE takes ACC's second port.
        """
        await self._prepare(ctx, contents)
        port, seen = self.compute.command, Seen()
        now, idle = 0, 0
        while idle < PATIENCE and seen.fault is None:
            at = len(seen.start)
            waiting = at < len(instructions)
            ctx.set(port.waiting, waiting)
            ctx.set(port.ready, waiting and (at == 0 or ready()))
            if waiting:
                ctx.set(port.word, instructions[at].pack(self.config))
                ctx.set(port.index, at)
            if hasattr(self.compute, "acc_y"):
                ctx.set(self.compute.acc_y_taken, taken())
            self._note(ctx, seen, now)
            idle = idle + 1 if len(seen.finish) == len(instructions) else 0
            await ctx.tick()
            now += 1
        entries = [ctx.get(self.memories["acc"].data[i]) for i in range(self.config.depth("acc"))]
        raw = b"".join(e.to_bytes(self.config.acc_entry, "little") for e in entries)
        seen.acc = np.frombuffer(raw, np.int32).reshape(-1, self.config.block_out)
        return seen

    async def _prepare(self, ctx, contents):
        ctx.set(self.reset, 1)
        await ctx.tick()
        table = contents.get("tab", b"") if hasattr(self.compute, "tab") else b""
        for at, result in enumerate(np.frombuffer(table, "<u2").tolist()):
            ctx.set(self.tab.enable, 1)
            ctx.set(self.tab.address, at)
            ctx.set(self.tab.data, result)
            await ctx.tick()
        if table:
            ctx.set(self.tab.enable, 0)
        ctx.set(self.reset, 0)
        for name in self.memories:
            size, raw = self.config.entry(name), contents.get(name, b"")
            for i in range(self.config.depth(name)):
                value = int.from_bytes(raw[i * size : (i + 1) * size], "little")
                ctx.set(self.memories[name].data[i], value)

    def _note(self, ctx, seen, now):
        compute, port = self.compute, self.compute.command
        started = ctx.get(port.start)
        assert not started or ctx.get(port.ready)
        if ctx.get(compute.fault.valid):
            seen.fault = Fault(ctx.get(compute.fault.cause)), ctx.get(compute.fault.index), now
            return
        if started:
            seen.start.append(now)
        if ctx.get(port.finish):
            seen.finish.append(now)
            seen.pushed.append((ctx.get(port.push_prev), ctx.get(port.push_next)))
        cause = None if ctx.get(compute.activity.idle) else Cause(ctx.get(compute.activity.cause))
        seen.causes.append(cause)
        reads_y = hasattr(compute, "acc_y") and ctx.get(compute.acc_y.enable)
        if reads_y and ctx.get(compute.acc_y_taken):
            seen.held += 1
            computes = self.config.reciprocal_units and cause == Cause.BUSY  # y is kept
            assert cause == Cause.BANK or computes
        if ctx.get(compute.acc_write.enable):
            seen.writes.append((now, ctx.get(compute.acc_write.address)))


# Random streams -------------------------------------------------------------------------------


class Draw:
    """Draws micro-ops and instructions that meet often: few entries, little distance."""

    def __init__(self, config, seed):
        self.config, self.random = config, Random(seed)
        near = self.random.choice((2, 4, 7))
        self.uops = [
            Uop(
                first=self.random.randrange(2),
                dst=self.random.randrange(near),
                src=self.random.randrange(near),
                wgt=self.random.randrange(4),
            )
            for _ in range(config.uop_depth)
        ]

    def contents(self):
        """The memories as bytes: micro-ops, and random data."""
        config = self.config
        raw = {
            name: self.random.randbytes(config.depth(name) * config.entry(name))
            for name in buffers_of(config)[1:]
        }
        packed = b"".join(uop.encode(config) for uop in self.uops)
        return {"uop": packed, **raw}

    def stream(self, length, engine=Engine.COMPUTE):
        executor = ring_of(self.config).executor
        makers = {Gemm: self._gemm, Alu: self._alu}
        mine = [make for cls, make in makers.items() if executor[cls] == engine]
        return [self.random.choice(mine)() for _ in range(length)]

    def _nest(self, *streams):
        pick, config = self.random.choice, self.config
        extents = [pick((1, 1, 2, 3)) for _ in range(3)]
        if self.random.random() < 0.1:
            extents[self.random.randrange(3)] = 0
        steps = {}
        for stream, buffer in streams:
            top = max(config.depth(buffer) - 25, 0)
            steps[f"{stream}_base"] = pick((0, 0, 1, top))
            steps |= {f"{stream}_{i}": pick((0, 0, 1, 2)) for i in range(3)}
        return {
            **{f"extent_{i}": n for i, n in enumerate(extents)},
            "uop_begin": self.random.randrange(config.uop_depth - 5),
            "uop_count": pick((0, 1, 1, 2, 3, 5)),
            "push_prev": pick((0, 1)),
            "push_next": pick((0, 1)),
            **steps,
        }

    def _gemm(self):
        streams = (("dst", "acc"), ("src", "inp"), ("wgt", "wgt"), ("bias", "acc"))
        gemm = Gemm(init=self.random.choice(list(Init)), **self._nest(*streams))
        if self.config.window_rows == 1:
            return gemm
        pitch = self.random.choice((0, 1, 7, (self.config.depth("inp") - 25) // 2))
        return gemm.replace(window=self.random.randrange(2), pitch=pitch)

    def _alu(self):
        random, op = self.random, self.random.choice(operations(self.config))
        wide = random.randrange(-(1 << 31), 1 << 31)
        number = random.randrange(tables(self.config) or 1)
        return Alu(
            alu_op=op,
            use_imm=random.randrange(2),
            init=random.choice((0, 0, 1)),
            imm=pack_scale(random.random())
            if op.imm == "scale"
            else wide >> 8 << 8 | number
            if op == AluOp.TABLE
            else random.choice((3, wide)),
            weight=random.randrange(-(1 << 23), 1 << 23),
            zero=random.randrange(-256, 256),
            low=random.randrange(-256, 256),
            high=random.randrange(-256, 256),
            **self._nest(("dst", "acc"), ("src", "acc")),
        )

    def spoil(self, stream):
        """One index made large, so that it may leave its buffer; sums that would wrap, too."""
        at = self.random.randrange(len(stream))
        parts = ("dst", "src", "wgt", "bias", "uop_begin")
        if self.config.window_rows > 1:
            parts = (*parts, "pitch")
        if getattr(stream[at], "alu_op", None) == AluOp.TABLE:
            parts = (*parts, "imm")
        names = [f for f in stream[at].fields if f.name.startswith(parts)]
        each = self.random.choice(names)
        _, high = each.bounds(self.config)
        value = self.random.choice((high, self.random.randint(0, high)))
        if each.name == "imm":
            value = tables(self.config) + self.random.choice((0, 0, 17))
        stream[at] = stream[at].replace(**{each.name: value})


@dataclass
class Expected:
    """The simulator's run, from the start of the engine's first instruction."""

    start: list[int]
    finish: list[int]
    causes: dict[Cause, int]
    fault: tuple[Fault, int, int] | None
    acc: np.ndarray | None


def expect(config, instructions, contents, engine=Engine.COMPUTE):
    """The stream behind LOADs of all memories, of which the last gives the token to start."""
    dram, loads, at = bytearray(1 << 14), [], 0
    buffers = buffers_of(config)
    for name in buffers:
        raw = contents[name]
        n = len(raw) // config.entry(name)
        loads.append(
            Load(memory=Mem.named(name.upper()), dram_base=at, x_size=n, y_size=1, z_size=1)
        )
        dram[at : at + len(raw)] = raw
        at += -(-len(raw) // 64) * 64
    queue = ring_of(config).token_queue(Engine.LOAD, engine)
    loads[-1] = loads[-1].replace(**{queue.push: 1})
    # Nobody takes what the engine pushes, and the queues are deep.
    stream = [i.replace(**{queue.pop: n == 0}) for n, i in enumerate(instructions)]
    laid = Stream.of(config, [*loads, *stream, Finish()], at)
    raw = b"".join(i.encode(config) for i in laid.instructions)
    dram[at : at + len(raw)] = raw
    memory = np.frombuffer(bytes(dram), np.uint8).copy()
    clock = Clock(laid, memory)
    count = len(buffers)
    first = int(clock.start[count])
    start, finish = (
        [int(t) - first for t in e[count:-1] if t >= 0] for e in (clock.start, clock.finish)
    )
    counts = clock.causes[engine]
    fault = None
    if clock.fault:
        fault = clock.fault, clock.fault_row - count, clock.cycles - 1 - first
    causes = {cause: int(counts[cause]) for cause in (Cause.BUSY, Cause.BANK)}
    acc = None if fault else run_functional(laid, clock.finish, memory).acc
    return Expected(start, finish, causes, fault, acc)


def assert_same(seen, wanted, instructions):
    assert seen.fault == wanted.fault
    assert (seen.start, seen.finish) == (wanted.start, wanted.finish)
    counted = {cause: seen.causes.count(cause) for cause in wanted.causes}
    assert counted == wanted.causes
    flags = [(i.push_prev, i.push_next) for i in instructions[: len(seen.finish)]]
    assert seen.pushed == flags
    if wanted.acc is not None:
        assert np.array_equal(seen.acc, wanted.acc)
        assert seen.causes[wanted.finish[-1] + 1 :] == [None] * (PATIENCE - 1)


SOME, MANY = range(2), range(2, 40)  # seeds of random streams


@pytest.mark.parametrize("seeds", [SOME, pytest.param(MANY, marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_random_streams(config, seeds):
    harness, met = Harness(config), set()

    async def test(ctx):
        for seed in seeds:
            draw = Draw(config, seed)
            stream, contents = draw.stream(24), draw.contents()
            seen = await harness.program(ctx, stream, contents)
            assert_same(seen, expect(config, stream, contents), stream)
            met.update(seen.causes)

    harness.run(test)
    assert met == {Cause.BUSY, Cause.BANK, Cause.DRAIN, None}


@pytest.mark.parametrize("engine", [Engine.COMPUTE, Engine.VECTOR], ids=lambda e: e.name)
@pytest.mark.parametrize("config", VECTOR.values(), ids=VECTOR)
def test_random_streams_of_one_kind(config, engine):
    """GEMM alone never waits; ALU alone does what it does beside GEMM in one pipeline."""
    harness, met = Harness(config, engine), set()

    async def test(ctx):
        for seed in range(3):
            draw = Draw(config, seed)
            stream, contents = draw.stream(24, engine), draw.contents()
            seen = await harness.program(ctx, stream, contents)
            assert_same(seen, expect(config, stream, contents, engine), stream)
            met.update(seen.causes)

    harness.run(test)
    waits = {Cause.BANK} if engine == Engine.VECTOR else set()
    assert met == {Cause.BUSY, Cause.DRAIN, None} | waits


@pytest.mark.parametrize("share", [0, 0.3, 0.9], ids="port taken {}".format)
def test_instructions_that_come_when_they_like(share):
    """Other cycles, the same results; what STORE reads is never taken for a y."""
    harness, held = Harness(TINY), []

    async def test(ctx):
        for seed in range(4):
            draw = Draw(TINY, 100 + seed)
            stream, contents = draw.stream(20), draw.contents()
            late = draw.random.choice((0.05, 0.5))
            ready = lambda: draw.random.random() < late  # noqa: E731
            taken = lambda: draw.random.random() < share  # noqa: E731
            seen = await harness.program(ctx, stream, contents, ready, taken)
            wanted = expect(TINY, stream, contents)
            assert len(seen.finish) == len(stream)
            assert np.array_equal(seen.acc, wanted.acc)
            held.append(seen.held)

    harness.run(test)
    assert any(held) == (share > 0)


def inverted():
    """What ACC holds after reciprocals and roots while STORE often takes y's port, and what it
    should hold. One unit reads y once for each lane, many cycles after READ did."""
    config = load_config("tiny", ["reciprocal_units=1"])
    harness, results = Harness(config), []

    async def test(ctx):
        draw = Draw(config, 7)
        nest = {"uop_count": 2, "extent_0": 1, "extent_1": 1, "extent_2": 1}
        stream = [
            Alu(alu_op=op, src_base=base, dst_base=20 + base, **nest)
            for base, op in enumerate((AluOp.RECIPROCAL, AluOp.RSQRT))
        ]
        contents = draw.contents()
        taken = lambda: draw.random.random() < 0.5  # noqa: E731
        seen = await harness.program(ctx, stream, contents, taken=taken)
        results.extend((seen.acc, expect(config, stream, contents).acc))

    harness.run(test)
    return results


def test_reciprocals_while_store_reads():
    assert np.array_equal(*inverted())


def test_a_y_that_is_not_kept_is_noticed(monkeypatch, tmp_path):
    keeps = "with m.If(takes):", "with m.If(1):"
    plant((combine, "Combine", "_feed_early", *keeps), monkeypatch, tmp_path)
    assert not np.array_equal(*inverted())


@pytest.mark.parametrize("seeds", [SOME, pytest.param(MANY, marks=pytest.mark.long)], ids=str)
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_random_streams_that_leave_their_buffers(config, seeds):
    harness, faults = Harness(config), set()

    async def test(ctx):
        for seed in range(200, 200 + 6 * len(seeds)):
            draw = Draw(config, seed)
            stream, contents = draw.stream(6), draw.contents()
            draw.spoil(stream)
            seen = await harness.program(ctx, stream, contents)
            assert_same(seen, expect(config, stream, contents), stream)
            faults.add(seen.fault and seen.fault[0])

    harness.run(test)
    assert faults == {None, Fault.ADDRESS}
