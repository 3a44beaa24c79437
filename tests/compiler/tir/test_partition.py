"""Loops in two where guards begin: what becomes of them, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler import tir
from vdla.compiler.tir.parser import parse
from vdla.compiler.tir.partition import partition_loops
from vdla.compiler.tir.printer import show

SUMS = """
func main(x: float32[{rows}, {size}], y: float32[{rows}, {lanes}]):
    for i in {rows}:
        for l in {lanes} vectorized:
            y[i, l] = 0.0
        for k in {steps}:
            for l in {lanes} vectorized:
                if k * {lanes} + l < {size}:
                    y[i, l] = y[i, l] + x[i, k * {lanes} + l]
"""


def sums(size, lanes, rows=2):
    steps = -(-size // lanes)
    return parse(SUMS.format(size=size, lanes=lanes, rows=rows, steps=steps))


def test_the_last_step_has_fewer_lanes():
    text = show(partition_loops(sums(37, 16)))
    assert text.count("if ") == 0
    assert "for k in 2:" in text
    assert "in 5 vectorized:" in text


@pytest.mark.parametrize("size", [32, 16, 5])
def test_what_stays(size):
    """Whole vectors have no guard; one step is no loop that could be split."""
    text = show(partition_loops(sums(size, 16)))
    assert text.count("for k") == 1


@given(size=st.integers(1, 70), lanes=st.sampled_from((2, 4, 8, 16)))
def test_numbers_stay(size, lanes):
    func = sums(size, lanes)
    x = np.random.default_rng(size).standard_normal((2, size)).astype(np.float32)
    before, after = np.zeros((2, lanes), np.float32), np.zeros((2, lanes), np.float32)
    tir.run(func, [x, before])
    tir.run(tir.verify(partition_loops(func)), [x, after])
    np.testing.assert_array_equal(before, after)
