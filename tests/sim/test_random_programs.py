"""Random legal programs: sound for the checker, one result in every order, every cycle accounted.

The instructions are also executed by a second reading of the manual, in plain Python.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from random import Random

import numpy as np
import pytest
from plain_operations import result, signed

from vdla.isa.config import config_names, load_config
from vdla.isa.instructions import Alu, AluOp, Gemm, Init, Load, Mem, Store, Uop
from vdla.isa.numbers import rq
from vdla.isa.options.tables import results_per_word
from vdla.isa.ring import Engine, engines, ring_of
from vdla.sim.checker import check
from vdla.sim.machine import simulate
from vdla.sim.random_programs import DRAM_BYTES, random_program
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream, memory_image
from vdla.sim.timing import Clock
from vdla.sim.trace import records, tokens, trace_events

CONFIGS = [load_config(name) for name in config_names()]
TIGHT = load_config("tiny", ["token_queue=2", "command_queue=2", "writes_in_flight=1"])
SLOW = load_config("tiny", ["memory.latency=3", "memory.bytes_per_cycle=1", "reads_in_flight=1"])
FAST = load_config("narrow", ["memory.latency=0", "burst_beats=3", "read_buffer_beats=16"])
TABLES = load_config("tiny", ["table_bytes=1024"])
OPTIONS = [
    load_config("tiny", ["table_bytes=1024", "forwarding=1", "window_taps=2"]),
    load_config("narrow", ["forwarding=1", "window_taps=3"]),
    load_config("tiny", ["block_in=16", "forwarding=1", "window_taps=8", "wgt_bytes=1024"]),
    load_config("tiny", ["block_in=16", "window_taps=3", "window_rows=2", "wgt_bytes=1024"]),
    load_config("narrow", ["weights4=1"]),
]
RECIPROCALS = load_config("tiny", ["reciprocal_units=2", "memory.latency=2"])
VECTOR = load_config("tiny", ["vector_engine=1", "table_bytes=1024", "memory.latency=2"])
EVERY = [*CONFIGS, TIGHT, SLOW, FAST, TABLES, *OPTIONS, RECIPROCALS, VECTOR]
UNITS = [RECIPROCALS, VECTOR.override(["reciprocal_units=4"])]  # in COMPUTE, and beside it


def flags(config):
    return [f"{verb}_{side}" for verb in ("pop", "push") for side in ring_of(config).sides]


def cases(count, size, configs=EVERY, seed=0):
    for number in range(seed, seed + count):
        program = random_program(configs[number % len(configs)], number, size)
        yield program, memory_image(program, DRAM_BYTES)


# The machine ------------------------------------------------------------------------------------


def test_they_are_sound_and_use_everything():
    seen = Counter()
    configs = ((TABLES, VECTOR), OPTIONS, (RECIPROCALS,))
    drawn = chain(cases(80, 40), *(cases(60, 40, each) for each in configs))
    for program, dram in drawn:
        assert check(program.config, program.instructions, dram, program.base) == []
        for each in program.instructions:
            seen[each.mnemonic] += 1
            engine = ring_of(program.config).engine_of(each)
            seen.update((engine.name, flag) for flag in flags(VECTOR) if getattr(each, flag))
            if isinstance(each, Load | Store):
                seen[each.mnemonic, Mem(each.memory).name] += 1
            if isinstance(each, Gemm):
                seen["init", each.init] += 1
                seen["window", each.window] += 1
                if program.config.window_rows > 1:
                    seen["pitch", bool(each.window), bool(each.pitch)] += 1
            if isinstance(each, Alu):
                seen["op", each.alu_op] += 1
    wanted = [(engine.name, flag) for engine in engines(VECTOR) for flag in flags(VECTOR)]
    wanted += [("LOAD", m.name) for m in Mem] + [("STORE", m) for m in ("INP", "ACC", "ACC8")]
    wanted += [("window", 0), ("window", 1)]
    wanted += [("pitch", window, some) for window in (False, True) for some in (False, True)]
    wanted += [("init", i) for i in Init] + [("op", op) for op in AluOp]
    assert all(seen[each] > 20 for each in wanted), seen


def test_they_are_reproducible():
    assert random_program(CONFIGS[0], 7, 30) == random_program(CONFIGS[0], 7, 30)
    assert random_program(CONFIGS[0], 7, 30) != random_program(CONFIGS[0], 8, 30)


def test_shortcuts_change_nothing():
    for program, dram in cases(60, 60, seed=1000):
        stream = Stream.of(program.config, program.instructions, program.base)
        quick, stepped = (Clock(stream, dram, stepped=s) for s in (False, True))
        assert quick.cycles == stepped.cycles > 0
        np.testing.assert_array_equal(quick.start, stepped.start)
        np.testing.assert_array_equal(quick.finish, stepped.finish)
        np.testing.assert_array_equal(quick.causes, stepped.causes)


def test_the_books_of_a_run():
    for program, dram in cases(40, 50, seed=2000):
        run = simulate(program.config, program.instructions, dram, program.base)
        for engine in engines(program.config):
            assert sum(run.causes[engine.name].values()) == run.cycles
            mine = Stream.of(program.config, program.instructions).engine(engine)
            assert (np.diff(run.start[mine]) > 0).all()
            assert (np.diff(run.finish[mine]) > 0).all()
        for token in tokens(ring_of(program.config), program.instructions):
            assert run.finish[token.giver] < run.start[token.taker]
        check_records(run)
        check_timeline(run)


def check_records(run):
    """Stalls are the cycles in which an engine has nothing in flight, and have a cause."""
    for record in records(run):
        assert record.start <= record.finish < run.cycles
        assert (record.stall == "") == (record.stalled == 0)
        assert (record.waited_for is not None) == (record.stall == "token")
        if record.stall == "token":
            assert record.start - 1 in (run.start[record.waited_for], run.finish[record.waited_for])
    for engine in (Engine.LOAD, Engine.STORE):  # idle_cause says the same, cycle by cycle
        causes = run.causes[engine.name]
        mine = [r for r in records(run) if r.engine == engine]
        last = max((r.finish for r in mine), default=-1)
        idle = sum(r.stalled for r in mine) + run.cycles - 1 - last
        assert idle == causes["token"] + causes["fetch"] + causes["drain"]


def check_timeline(run):
    """Perfetto's rules: known phases, whole ordered times, bars of a lane apart, unique arrows."""
    events = trace_events(run, ["a"] * len(run.instructions))["traceEvents"]
    timed = [event for event in events if event["ph"] != "M"]
    assert {event["ph"] for event in events} <= {"M", "X", "s", "f"}
    assert all(type(event["ts"]) is int for event in events)
    assert [event["ts"] for event in timed] == sorted(event["ts"] for event in timed)
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    ends = {}
    for event in (e for e in timed if e["ph"] == "X"):
        lane = event["pid"], event["tid"]
        assert lane in named
        assert event["ts"] >= ends.get(lane, 0)
        ends[lane] = event["ts"] + event["dur"]
    wanted = tokens(ring_of(run.config), run.instructions)
    for phase in "sf":
        assert len({e["id"] for e in timed if e["ph"] == phase}) == len(wanted)
        assert len([e for e in timed if e["ph"] == phase]) == len(wanted)


# Tokens -----------------------------------------------------------------------------------------


KINDS = pytest.mark.parametrize("configs", [EVERY, UNITS], ids=["every", "reciprocals"])


@KINDS
def test_deleting_any_flag_is_caught(configs):
    for program, dram in cases(6, 30, configs, seed=3000):
        for index, each in enumerate(program.instructions):
            for flag in flags(program.config):
                if getattr(each, flag):
                    changed = without(program.instructions, (index, flag))
                    assert check(program.config, changed, dram, program.base)


@KINDS
def test_deleting_any_token_is_caught_or_changes_nothing(configs):
    """What the checker lets pass gives the same memories in any order that tokens allow."""
    caught = harmless = 0
    rng = Random(0)
    for program, dram in cases(9, 30, configs, seed=4000):
        wanted = run_in_order(program, dram, range(len(program.instructions)))
        for token in tokens(ring_of(program.config), program.instructions):
            changed = without(program.instructions, *ends(token))
            if check(program.config, changed, dram, program.base):
                caught += 1
                continue
            harmless += 1
            ring = ring_of(program.config)
            one, two, *others = ring.engines
            mixed = (two, *others, one)
            for prefer in (ring.engines, ring.engines[::-1], mixed, None, None):
                order = legal_order(ring, changed, prefer, rng)
                assert same(run_in_order(program, dram, order), wanted)
    assert caught > 30
    assert harmless > 10


def without(instructions, *flags):
    """The stream with some token flags cleared."""
    changed = list(instructions)
    for index, flag in flags:
        changed[index] = changed[index].replace(**{flag: 0})
    return changed


def ends(token):
    """The flags at both ends of a token."""
    return (token.giver, token.queue.push), (token.taker, token.queue.pop)


def legal_order(ring, instructions, prefer, rng):
    """A serial order that tokens allow, by engines' preference or at random."""
    runs_on = [ring.engine_of(each) for each in instructions]
    left = {e: [i for i, on in enumerate(runs_on[:-1]) if on == e] for e in ring.engines}
    held, order = Counter(), []
    while any(left.values()):
        heads = [indices[0] for indices in left.values() if indices]
        ready = [i for i in heads if all(held[q] for q in passes(ring, instructions[i], "pop"))]
        index = rng.choice(ready)
        if prefer is not None:
            index = min(ready, key=lambda i: prefer.index(runs_on[i]))
        held.subtract(passes(ring, instructions[index], "pop"))
        held.update(passes(ring, instructions[index], "push"))
        left[runs_on[index]].remove(index)
        order.append(index)
    return order


def passes(ring, each, verb):
    """The token queues that an instruction pops from or pushes to."""
    end = {"pop": "taker", "push": "giver"}[verb]
    mine = (q for q in ring.token_queues if getattr(q, end) == ring.engine_of(each))
    return [queue for queue in mine if getattr(each, getattr(queue, verb))]


# What instructions do -----------------------------------------------------------------------------


def run_in_order(program, dram, order):
    """The memories after executing the instructions one by one."""
    state = State(program.config, dram.copy())
    rows = Stream.of(program.config, program.instructions).rows
    for index in order:
        execute(state, rows[index])
    return state


def same(state, other):
    names = ("inp", "wgt", "acc", "uop", "dram")
    return all(np.array_equal(getattr(state, n), getattr(other, n)) for n in names)


@pytest.mark.parametrize("config", [*CONFIGS, SLOW, *OPTIONS], ids=lambda c: c.name)
def test_semantics_equal_a_second_reading(config):
    for program, dram in cases(3, 40, [config], seed=5000):
        state = run_in_order(program, dram, range(len(program.instructions)))
        second = Plain(config, dram.copy())
        for each in program.instructions:
            second.execute(each)
        np.testing.assert_array_equal(state.inp, second.inp)
        np.testing.assert_array_equal(state.wgt, second.wgt)
        np.testing.assert_array_equal(state.acc, second.acc)
        np.testing.assert_array_equal(state.dram, second.dram)
        simulate(config, program.instructions, dram, program.base)
        np.testing.assert_array_equal(dram, second.dram)


class Plain:
    """Instructions executed from the manual's words, without speed in mind."""

    def __init__(self, config, dram):
        self.config, self.dram = config, dram
        self.inp = np.zeros((config.depth("inp"), config.block_in), np.int8)
        self.wgt = np.zeros((config.depth("wgt"), config.block_out, config.block_in), np.int8)
        self.acc = np.zeros((config.depth("acc"), config.block_out), np.int32)
        self.uop = [Uop()] * config.uop_depth
        self.tab = np.zeros((config.depth("tab"), results_per_word(config)), np.int16)

    def execute(self, each):
        getattr(self, each.mnemonic.lower())(each)

    def finish(self, each):
        pass

    def load(self, load):
        memory = Mem(load.memory)
        size = self.config.entry(memory.name.lower())
        shape = (
            load.z_size,
            load.pad_y0 + load.y_size + load.pad_y1,
            load.pad_x0 + load.x_size + load.pad_x1,
        )
        for at, (z, y, x) in enumerate(np.ndindex(shape)):
            y, x = y - load.pad_y0, x - load.pad_x0
            raw = None
            if 0 <= y < load.y_size and 0 <= x < load.x_size:
                entry = z * load.z_stride + y * load.y_stride + x * load.x_stride
                raw = self.dram[load.dram_base + entry * size :][:size].tobytes()
            self.enter(memory, load.sram_base + at, raw, load)

    def enter(self, memory, at, raw, load):
        if memory == Mem.UOP:
            each = self.config.uop_entry
            for i in range(self.config.uops_per_word):
                uop = Uop.decode(raw[i * each :][:each], self.config) if raw else Uop()
                self.uop[at * self.config.uops_per_word + i] = uop
        elif memory == Mem.TAB:
            self.tab[at] = load.pad_value if raw is None else np.frombuffer(raw, "<i2")
        elif memory == Mem.ACC:
            self.acc[at] = load.pad_value if raw is None else np.frombuffer(raw, "<i4")
        elif memory == Mem.ACC8:
            lanes = load.pad_value if raw is None else np.frombuffer(raw, "i1").astype(int)
            self.acc[at] = lanes - load.zero
        elif memory == Mem.WGT4:
            digits = "" if raw is None else "".join(f"{byte:02x}"[::-1] for byte in raw)
            lanes = [signed(int(digit, 16), 4) for digit in digits] or load.pad_value
            self.wgt[at] = lanes if raw is None else np.reshape(lanes, self.wgt.shape[1:])
        else:
            buffer = self.inp if memory == Mem.INP else self.wgt
            lanes = load.pad_value if raw is None else np.frombuffer(raw, "i1")
            buffer[at] = lanes if raw is None else lanes.reshape(buffer.shape[1:])

    def store(self, store):
        narrow = store.memory != Mem.ACC
        size = self.config.block_out * (1 if narrow else 4)
        memory = self.inp.reshape(-1).view(np.uint8) if store.memory == Mem.INP else self.dram
        for z, y, x in np.ndindex(store.z_size, store.y_size, store.x_size):
            lanes = self.acc[store.sram_base + z * store.z_pitch + y * store.y_pitch + x]
            if narrow:
                scales = self.acc[store.scale_base + z]
                lanes = [
                    min(max(rq(int(v), int(s) & 0xFFFFFFFF) + store.zero, store.low), store.high)
                    for v, s in zip(lanes, scales, strict=True)
                ]
            entry = z * store.z_stride + y * store.y_stride + x * store.x_stride
            raw = np.array(lanes, "i1" if narrow else "<i4").view(np.uint8)
            memory[store.dram_base + entry * size :][:size] = raw

    def nest(self, each):
        if each.steps() == 0:
            return
        for loops in np.ndindex(each.extents()):
            at = {
                name: getattr(each, f"{name}_base")
                + sum(i * getattr(each, f"{name}_{n}") for n, i in enumerate(loops))
                for name in ("dst", "src", "wgt", "bias")
                if hasattr(each, f"{name}_base")
            }
            for uop in self.uop[each.uop_begin : each.uop_begin + each.uop_count]:
                yield at, uop

    def gemm(self, gemm):
        vectors = [np.zeros(self.config.block_in, np.int8)] * self.config.window_taps
        seconds = list(vectors)  # of the window's second row
        for at, uop in self.nest(gemm):
            vectors.append(self.inp[at["src"] + uop.src])
            if gemm.window:
                seconds.append(self.inp[at["src"] + uop.src + gemm.pitch])
            start = self.acc[at["dst"] + uop.dst].astype(np.int64)
            if uop.first and gemm.init == Init.ZERO:
                start = 0 * start
            elif uop.first and gemm.init == Init.BIAS:
                start = self.acc[at["bias"]].astype(np.int64)
            tile = self.wgt[at["wgt"] + uop.wgt].astype(np.int64)
            rows = [vectors, seconds][: self.config.window_rows] if gemm.window else []
            total = start + (tile * self.seen(vectors[-1], rows).astype(np.int64)).sum(1)
            self.acc[at["dst"] + uop.dst] = total.astype(np.int32)

    def seen(self, vector, rows):
        """What each output sees: [output, lane]."""
        lanes = np.tile(vector, (self.config.block_out, 1))
        taps = self.config.window_taps
        for output, number, lane in np.ndindex(self.config.block_out, len(rows), 2 * taps):
            source = (output - output % 2 + lane % 2) % self.config.block_in
            lanes[output, 2 * taps * number + lane] = rows[number][-1 - lane // 2][source]
        return lanes

    def alu(self, alu):
        for at, uop in self.nest(alu):
            dst = at["dst"] + uop.dst
            immediate = alu.use_imm and not AluOp(alu.alu_op).y_from_acc
            ys = [alu.imm] * self.config.block_out
            if not immediate:
                ys = self.acc[at["src"] + uop.src].tolist()
            starts = uop.first and alu.init
            lanes = [
                y if starts else self.operate(alu, x, y)
                for x, y in zip(self.acc[dst].tolist(), ys, strict=True)
            ]
            self.acc[dst] = [signed(lane, 32) for lane in lanes]

    def operate(self, alu, x, y):
        op = AluOp(alu.alu_op)
        if op == AluOp.TABLE:
            return int(self.tab.reshape(-1, 256)[alu.imm % 256][y % 256])
        return result(op, x, y, alu.imm, alu.weight, alu.zero, alu.low, alu.high)
