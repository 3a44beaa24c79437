"""Counts of programs against an interpreter that touches one element at a time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from vdla.isa.config import load_config
from vdla.isa.instructions import (
    Alu,
    AluOp,
    Finish,
    Gemm,
    Init,
    Load,
    Mem,
    Store,
    Uop,
    instruction_bytes,
)
from vdla.isa.operations import X
from vdla.isa.options.tables import tables
from vdla.isa.program import Program
from vdla.sim.counts import Access, Counts, counts_of
from vdla.sim.machine import run_stream
from vdla.sim.random_programs import DRAM_BYTES, random_program
from vdla.sim.stream import Stream, memory_image

CONFIGS = {
    "tiny": load_config("tiny"),
    "all": load_config(
        "tiny",
        [
            *("table_bytes=1024", "forwarding=1", "window_taps=2", "vector_engine=1"),
            *("reciprocal_units=2", "weights4=1"),
        ],
    ),
    "two rows": load_config("narrow", ["window_taps=2", "window_rows=2", "forwarding=1"]),
    "wide micro-ops": load_config("narrow", ["port_bytes=8", "acc_bytes=131072"]),
}


class Interpreter:
    """Walks through a program element by element, and writes down what it touches."""

    def __init__(self, config, program):
        self.config = config
        self.image = memory_image(program, DRAM_BYTES).tobytes()
        self.uops = {}
        self.accesses, self.operations = Counter(), Counter()
        self.multiply_adds = self.loaded = self.stored = 0
        for each in program.instructions:
            visit = {Load: self.load, Store: self.store, Gemm: self.gemm, Alu: self.alu}
            if not isinstance(each, Finish):
                visit[type(each)](each)

    def touch(self, memory, writes, bits):
        self.accesses[Access(memory, writes, bits)] += 1

    def load(self, load):
        config, memory = self.config, Mem(load.memory)
        size, entry = config.entry(memory.name.lower()), load.sram_base
        for z in range(load.z_size):
            for y in range(-load.pad_y0, load.y_size + load.pad_y1):
                for x in range(-load.pad_x0, load.x_size + load.pad_x1):
                    inside = 0 <= y < load.y_size and 0 <= x < load.x_size
                    steps = z * load.z_stride + y * load.y_stride + x * load.x_stride
                    at = load.dram_base + size * steps
                    if inside:
                        self.loaded += size
                    self.write_entry(memory, inside)
                    if memory == Mem.UOP:
                        pad = bytes([load.pad_value & 0xFF]) * size
                        self.keep(entry, self.image[at : at + size] if inside else pad)
                    entry += 1

    def write_entry(self, memory, inside):
        config = self.config
        if memory in (Mem.ACC, Mem.ACC8):
            self.touch("acc", True, 32 * config.block_out)
        elif memory == Mem.TAB:
            for _ in range(config.port_bytes // 2):
                self.touch("tab", True, 16)
        elif memory == Mem.WGT4:  # a beat of nibbles is two beats of int8
            whole = 8 * config.block_in * config.block_out
            beats = whole // (16 * config.port_bytes) if inside else 1
            for _ in range(beats):
                self.touch("wgt", True, whole // beats)
        elif inside:
            for _ in range(config.entry(memory.name.lower()) // config.port_bytes or 1):
                bits = min(config.port_bytes, config.entry(memory.name.lower())) * 8
                self.touch(memory.name.lower(), True, bits)
        else:
            self.touch(memory.name.lower(), True, 8 * config.entry(memory.name.lower()))

    def keep(self, entry, raw):
        size = self.config.uop_entry
        for i in range(self.config.uops_per_word):
            uop = Uop.decode(raw[i * size : i * size + size], self.config)
            self.uops[entry * self.config.uops_per_word + i] = uop

    def store(self, store):
        config = self.config
        for _ in range(store.z_size):
            if store.memory != Mem.ACC and store.x_size * store.y_size:
                self.touch("acc", False, 32 * config.block_out)
            for _ in range(store.y_size * store.x_size):
                self.touch("acc", False, 32 * config.block_out)
                size = config.block_out * (4 if store.memory == Mem.ACC else 1)
                if store.memory != Mem.INP:
                    self.stored += size
                    continue
                for _ in range(size // config.port_bytes):
                    self.touch("inp", True, 8 * config.port_bytes)

    def micro_ops(self, nest):
        for _ in range(nest.extent_0):
            for _ in range(nest.extent_1):
                for _ in range(nest.extent_2):
                    for u in range(nest.uop_begin, nest.uop_begin + nest.uop_count):
                        self.touch("uop", False, 8 * self.config.entry("uop"))
                        yield self.uops.get(u, Uop())

    def gemm(self, gemm):
        config = self.config
        for uop in self.micro_ops(gemm):
            for _ in range(2 if gemm.window and config.window_rows == 2 else 1):
                self.touch("inp", False, 8 * config.block_in)
            self.touch("wgt", False, 8 * config.block_in * config.block_out)
            if not (uop.first and gemm.init == Init.ZERO):
                self.touch("acc", False, 32 * config.block_out)
            self.touch("acc", True, 32 * config.block_out)
            self.multiply_adds += config.block_in * config.block_out

    def alu(self, alu):
        op, lanes = AluOp(alu.alu_op), self.config.block_out
        for uop in self.micro_ops(alu):
            copies = bool(uop.first and alu.init)
            if op.y_from_acc or not alu.use_imm:
                self.touch("acc", False, 32 * lanes)
            if not copies:
                self.operations[op.name] += lanes
                if op.x is not X.NONE:
                    self.touch("acc", False, 32 * lanes)
                for _ in range(lanes if op == AluOp.TABLE else 0):
                    self.touch("tab", False, 16)
            self.touch("acc", True, 32 * lanes)


def counted(config, program):
    image = memory_image(program, DRAM_BYTES)
    stream = Stream.of(config, program.instructions, program.base)
    run = run_stream(stream, image.copy(), numerics=False)
    return counts_of(stream, image, run), run


@pytest.mark.parametrize(
    ("name", "programs"),
    [("all", 12), *(pytest.param(name, 60, marks=pytest.mark.long) for name in CONFIGS)],
)
def test_counts_of_random_programs(name, programs):
    config, seen, done = CONFIGS[name], set(), Counter()
    for seed in range(programs):
        program = random_program(config, seed, 30)
        counts, run = counted(config, program)
        by_hand = Interpreter(config, program)
        assert counts.accesses == dict(by_hand.accesses)
        assert counts.operations == dict(by_hand.operations)
        assert counts.multiply_adds == by_hand.multiply_adds
        assert (counts.loaded_bytes, counts.stored_bytes) == (by_hand.loaded, by_hand.stored)
        assert counts.fetched_bytes == 31 * instruction_bytes(config)
        assert counts.idle == {
            engine: sum(n for cause, n in causes.items() if cause != "busy")
            for engine, causes in run.causes.items()
        }
        seen |= set(counts.accesses)
        done.update(counts.operations)
    memories = {"inp", "wgt", "acc", "uop"} | ({"tab"} if tables(config) else set())
    assert {(a.memory, a.writes) for a in seen} == {(m, w) for m in memories for w in (0, 1)}
    assert len(done) == (11 if tables(config) else 7)


def test_counts_of_two_runs_add_up():
    config = CONFIGS["tiny"]
    one, two = (counted(config, random_program(config, seed, 20))[0] for seed in (1, 2))
    both = one + two
    assert both.multiply_adds == one.multiply_adds + two.multiply_adds
    assert both.accesses.keys() == one.accesses.keys() | two.accesses.keys()
    assert sum(both.accesses.values()) == sum((*one.accesses.values(), *two.accesses.values()))
    assert one + Counts() == one


def test_an_empty_program_only_fetches():
    config = CONFIGS["tiny"]
    program = Program(config, [Finish()])
    stream = Stream.of(config, program.instructions)
    counts = counts_of(stream, np.zeros(100, np.uint8))
    assert counts == Counts(fetched_bytes=instruction_bytes(config))
