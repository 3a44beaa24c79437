"""No instruction reads or writes beyond a memory, whatever its micro-ops say.

Timing ends a program that does in a fault. Micro-ops that are loaded while they are read may be
others when the effects run; the simulator says so, and its own memory stays whole.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, AluOp, Finish, Gemm, Init, Load, Mem, Uop
from vdla.isa.program import Program
from vdla.sim.alu import combine
from vdla.sim.checker import check
from vdla.sim.gemm import multiply
from vdla.sim.machine import SimulationError, simulate
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream, memory_image

TINY = load_config("tiny", ["table_bytes=1024"])
INP, WGT, ACC, UOP = (TINY.depth(name) for name in ("inp", "wgt", "acc", "uop"))
FIELDS = {"first": 0, "dst": 1, "src": 2, "wgt": 3}


def leaves(instruction, **uop):
    """Whether it is refused, with one micro-op at 5; what is refused does nothing."""
    state = State(TINY, np.zeros(64, np.uint8))
    state.acc[:], state.inp[:], state.wgt[:] = 1, 2, 3
    for name, value in uop.items():
        state.uop[5, FIELDS[name]] = value
    row = Stream.of(TINY, [instruction.replace(uop_begin=5, uop_count=1), Finish()]).rows[0]
    try:
        execute(state, row)
    except IndexError:
        assert np.all(state.acc == 1)
        return True
    return False


@pytest.mark.parametrize(
    ("instruction", "base", "field", "depth"),
    [
        (Gemm(), "dst", "dst", ACC),
        (Gemm(), "src", "src", INP),
        (Gemm(), "wgt", "wgt", WGT),
        (Gemm(init=Init.BIAS), "bias", None, ACC),
        (Alu(), "dst", "dst", ACC),
        (Alu(), "src", "src", ACC),
        (Alu(alu_op=AluOp.WADD, use_imm=1), "src", "src", ACC),
        (Alu(alu_op=AluOp.TABLE, use_imm=1), "src", "src", ACC),
        (Alu(use_imm=1), "dst", "dst", ACC),
    ],
)
@settings(max_examples=40)
@given(data=st.data())
def test_the_last_entry_is_the_last(instruction, base, field, depth, data):
    """Of base, loops and micro-op, in whatever shares."""
    steps = [data.draw(st.integers(0, 9), label=f"step {i}") for i in range(3)]
    extents = [data.draw(st.integers(1, 3), label=f"extent {i}") for i in range(3)]
    uop = {"first": 1} | ({field: data.draw(st.integers(0, 9), label="micro-op")} if field else {})
    used = sum(s * (e - 1) for s, e in zip(steps, extents, strict=True)) + uop.get(field, 0)
    loops = {f"{base}_{i}": s for i, s in enumerate(steps)}
    loops |= {f"extent_{i}": e for i, e in enumerate(extents)}
    inside = instruction.replace(**loops, **{f"{base}_base": depth - 1 - used})
    assert not leaves(inside, **uop)
    assert leaves(inside.replace(**{f"{base}_base": depth - used}), **uop)


@pytest.mark.parametrize(
    ("instruction", "uop"),
    [
        (Alu(use_imm=1, src_base=ACC), {}),
        (Gemm(init=Init.BIAS, bias_base=ACC), {"first": 0}),
        (Gemm(init=Init.ZERO, bias_base=ACC), {"first": 1}),
        (Gemm(extent_0=0, dst_base=ACC), {}),
        (Gemm(extent_1=0, src_base=INP), {}),
        (Gemm(extent_2=0, wgt_base=WGT), {}),
    ],
)
def test_what_is_not_read_may_lie_anywhere(instruction, uop):
    """An immediate's src, a bias that nothing starts from, a nest without iterations."""
    assert not leaves(instruction, **uop)


@pytest.mark.parametrize("name", ["uop_count", "extent_0", "extent_1", "extent_2"])
@pytest.mark.parametrize("each", [Gemm(init=Init.BIAS), Alu(alu_op=AluOp.TABLE, imm=255)])
def test_an_empty_nest_reads_nothing(each, name):
    """Its micro-ops, and all that they would lead to, may lie beyond the ends."""
    most = {f"{base}_base": ACC - 1 for base in ("dst", "src", "bias")}
    most = {key: value for key, value in most.items() if hasattr(each, key)}
    counts = {"uop_count": 2, "extent_0": 3, "extent_1": 3, "extent_2": 3, "dst_0": 1}
    nest = each.replace(uop_begin=UOP - 1, **{**most, **counts, name: 0})
    program = [nest, Finish()]
    assert simulate(TINY, program, np.zeros(4096, np.uint8), 2048).cycles > 0
    assert check(TINY, program, np.zeros(4096, np.uint8), 2048) == []


def test_a_nest_without_micro_ops_takes_no_time():
    """However many iterations it has, as Python too: LLVM leaves some such loops out."""
    nests = [Gemm(uop_count=0), Alu(uop_count=0)]
    nests = [each.replace(extent_0=255, extent_1=255, extent_2=255) for each in nests]
    gemm, alu = Stream.of(TINY, [*nests, Finish()]).rows[:2]
    state = State(TINY, np.zeros(64, np.uint8))
    began = time.process_time()
    multiply(gemm, state.memories)
    combine(alu, state.memories)
    assert time.process_time() - began < 5


def test_the_last_table_is_the_last():
    """By the low bits of the immediate, for every micro-op that doesn't start from y."""
    table = Alu(alu_op=AluOp.TABLE, imm=-255)
    for init, first, imm, beyond in (
        (0, 0, -255, False), (0, 0, 2, True), (0, 1, 2, True), (1, 0, 2, True),
        (1, 1, 2, False), (0, 0, 255, True), (0, 0, 256, False),
    ):  # fmt: skip
        each = table.replace(init=init, imm=imm)
        assert leaves(each, first=first) is beyond, (init, first, imm)


@pytest.mark.parametrize("each", [Gemm(), Alu()])
def test_micro_ops_end_with_their_memory(each):
    state = State(TINY, np.zeros(64, np.uint8))
    last = each.replace(uop_begin=UOP - 1, uop_count=1)
    execute(state, Stream.of(TINY, [last, Finish()]).rows[0])
    with pytest.raises(IndexError):
        execute(state, Stream.of(TINY, [last.replace(uop_count=2), Finish()]).rows[0])


def test_micro_ops_that_change_while_they_run():
    """Micro-op 0 is read long before the LOAD has finished; effects run in order of finishing."""
    load = Load(memory=Mem.UOP, x_size=1, y_size=1, z_size=1)
    gemm = Gemm(uop_count=200, dst_base=3)
    uop = Uop(dst=ACC - 3).encode(TINY)
    program = Program(TINY, [load, gemm, Finish()], 4096, {0: uop})
    with pytest.raises(SimulationError) as failed:
        simulate(TINY, program.instructions, memory_image(program, 8192), program.base)
    assert str(failed.value) == (
        "instruction 1: expected micro-ops that no LOAD changes while they run, found ones that "
        "lead beyond a memory: GEMM uop_count=200 dst_base=3"
    )
