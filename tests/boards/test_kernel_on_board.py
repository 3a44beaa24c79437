"""A kernel from Python on the virtual board: what the simulator gives, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from vdla import te


@pytest.mark.long
def test_a_kernel_runs_on_the_virtual_board():
    ins = vdla.intrinsics("ulx3s")
    lanes = ins.alu_add.output.shape[0]
    x, y = (te.placeholder((12, lanes), "int32", name) for name in "xy")
    z = te.compute((12, lanes), lambda v, l: x[v, l] + y[v, l], "z")
    s = te.create_schedule(z)
    made = s.cache_write(z, vdla.ACC)
    for stage in (z, made, s.cache_read(x, vdla.ACC, [made]), s.cache_read(y, vdla.ACC, [made])):
        s[stage].tensorize(s[stage].axis[1], ins)
    kernel = vdla.build(s, [x, y, z], "ulx3s")
    rng = np.random.default_rng(0)
    a, b = rng.integers(-(1 << 31), 1 << 31, (2, 12, lanes)).astype(np.int32)
    sim, board = np.zeros((2, 12, lanes), np.int32)
    kernel(a, b, sim)
    run = kernel(a, b, board, device="board", board="ulx3s", virtual=True)
    np.testing.assert_array_equal(board, sim)
    np.testing.assert_array_equal(board, a + b)
    assert run.cycles is not None
    assert run.causes is not None
