"""OpenCL C of kernels: its text, and its numbers on whatever device of OpenCL there is.

VDLA_UPDATE_GOLDEN=1 rewrites the golden file.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import vdla
from tests.support.kernel_numbers import (
    FLOATS,
    INTEGERS,
    check_equal,
    random,
    reciprocals,
    requantization,
)
from tests.support.kernels import SCHEDULES, plain, tiled
from vdla import te
from vdla.compiler.tir.interp import run

pytest.importorskip("pyopencl", reason="pip install 'vdla[gpu]'")

TOLERANCE = {"float16": 1e-2, "float32": 1e-5, "float64": 1e-12}


def check(s, *arrays):
    """A schedule on the device equals the interpreter."""
    kernel = vdla.build(s, target="gpu")
    wanted = [a.copy() for a in arrays]
    run(s.mod, wanted)
    kernel(*arrays)
    check_equal(arrays, wanted, TOLERANCE)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    s = SCHEDULES[name]()
    check(s, *(random(p.shape, p.dtype) for p in s.mod.params))


def test_text():
    golden = Path(__file__).with_name("tiled.golden.cl")
    text = vdla.build(tiled(16, 8, 2, 4), target="gpu").passes["opencl"]
    if os.environ.get("VDLA_UPDATE_GOLDEN"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_operators_of_each_type():
    """One kernel for each type, with all operators of it."""
    for dtype in (*INTEGERS, *FLOATS):
        a, b = (te.placeholder((50,), dtype, name) for name in "AB")
        outs = [
            te.compute((50,), lambda i, f=f: f(a[i], b[i]), f"out{n}")
            for n, f in enumerate(operators(dtype))
        ]
        s = te.create_schedule(outs)
        for out in outs:
            (i,) = s[out].axis
            s[out].bind(i, te.thread_axis("threadIdx.x"))
        arrays = [random((50,), dtype) for _ in "ab"]
        if dtype in INTEGERS:
            arrays[1][arrays[1] == 0] = 1
        check(s, *arrays, *(np.zeros(50, out.dtype) for out in outs))


def operators(dtype):
    yield lambda a, b: a + b
    yield lambda a, b: a - b * a
    yield lambda a, b: te.minimum(a, b) + te.maximum(a, b)
    yield lambda a, b: te.select(te.any(a < b, te.equal(a, b)), a, b)
    yield lambda a, b: te.select(te.all(a >= b, te.not_equal(a, b)), a, b)
    yield lambda a, b: (a > b).astype("int8")
    yield lambda a, b: te.abs(a)
    yield lambda a, b: a.astype("float32") + b.astype("float32")
    if dtype in INTEGERS:
        yield lambda a, b: te.floordiv(a, b)
        yield lambda a, b: te.floormod(a, b)
        yield lambda a, b: (a & b) | (a ^ b)
        yield lambda a, b: (a >> 1) + (b << 1)
        yield lambda a, b: a.astype("int64").astype("int8")
        return
    yield lambda a, b: a / b
    yield lambda a, b: a.astype("int32") - (b + b).astype("int8").astype("int32")
    yield lambda a, b: te.exp(a) + te.log(b) + te.sqrt(a) + te.tanh(b)
    yield lambda a, b: te.floor(a) + te.rint(b) + te.power(a, b)
    yield lambda a, b: te.sin(a) + te.cos(b) + te.tan(a) + te.sigmoid(b) + te.erf(a)


def test_requantization_is_exact():
    s, arrays = requantization()
    check(s, *arrays)


def test_reciprocals_are_exact():
    s, arrays = reciprocals()
    check(s, *arrays)


def test_the_least_and_the_greatest_are_nan_where_either_side_is():
    a, b = (te.placeholder((4,), "float32", name) for name in "AB")
    s = plain(te.compute((4,), lambda i: te.maximum(a[i], te.minimum(b[i], 2.0)), "out"))
    nan = float("nan")
    check(s, np.array([nan, 1, nan, 3], "f"), np.array([1, nan, nan, 5], "f"), np.zeros(4, "f"))


def test_names_that_c_has_itself():
    a = te.placeholder((4,), "float32", "float")
    s = plain(te.compute((4,), lambda i: te.exp(a[i]), "exp"))
    check(s, np.ones(4, "f"), np.zeros(4, "f"))
