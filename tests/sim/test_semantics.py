"""Requantization and lane arithmetic at the edges of their ranges."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vdla.isa.config import load_config
from vdla.isa.instructions import Alu, AluOp, Finish, Mem, Store
from vdla.isa.numbers import rq
from vdla.sim.semantics import State, execute
from vdla.sim.stream import Stream

TINY = load_config("tiny")
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
WORD = st.builds(lambda m, k: m | k << 24, st.integers(0, (1 << 24) - 1), st.integers(0, 63))


def signed(word):
    return word - (1 << 32) if word >> 31 else word


def run(instruction, state):
    execute(state, Stream.of(TINY, [instruction, Finish()]).rows[0])


@settings(max_examples=300, deadline=None)
@given(st.lists(INT32, min_size=4, max_size=4), st.lists(WORD, min_size=4, max_size=4))
@example([-153, 153, -(1 << 31), (1 << 31) - 1], [63 << 24 | 0xFFFFEE] * 4)
@example([1, 3, -1, -3], [1 << 24 | 1] * 4)
@example([5, -5, 0, 7], [3, 0, 3, 0xFFFFFF])
def test_alu_and_store_requantize_alike(values, words):
    """Both equal the scalar definition, over every shift."""
    state = State(TINY, np.zeros(64, np.uint8))
    state.acc[0], state.acc[1] = values, [signed(word) for word in words]
    run(Store(memory=Mem.ACC8, x_size=1, y_size=1, z_size=1, scale_base=1, zero=3), state)
    exact = [rq(x, word) for x, word in zip(values, words, strict=True)]
    assert state.dram[:4].view(np.int8).tolist() == [min(max(x + 3, -128), 127) for x in exact]
    run(Alu(alu_op=AluOp.RQ, uop_count=1, src_base=1, zero=3, low=-256, high=255), state)
    assert state.acc[0].tolist() == [min(max(x + 3, -256), 255) for x in exact]


@settings(max_examples=200, deadline=None)
@given(INT32, INT32, st.integers(-(1 << 23), (1 << 23) - 1))
def test_sums_and_products_wrap(x, y, weight):
    state = State(TINY, np.zeros(64, np.uint8))
    for op, exact in (
        (AluOp.ADD, x + y),
        (AluOp.MUL, x * low(y, 25)),
        (AluOp.SHR, x >> low(y, 6) if low(y, 6) >= 0 else x << -low(y, 6)),
        (AluOp.WADD, low(x, 18) * weight + low(y, 18) * low(y, 24)),
    ):
        state.acc[0], state.acc[1] = x, y
        run(Alu(alu_op=op, uop_count=1, src_base=1, weight=weight, imm=low(y, 24)), state)
        assert state.acc[0].tolist() == [low(exact, 32)] * 4


def low(value, bits):
    """The low bits of a value, signed."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
