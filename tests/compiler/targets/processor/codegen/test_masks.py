"""Vectors of which some lanes compute: guards of last lanes, and selections of what may be read."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla import te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.codegen.llvm import compile_ir, jit
from vdla.compiler.targets.processor.description.processor import NATIVE, V4, Processor
from vdla.compiler.tir.interp import run

AVX512 = Processor("x86_64-unknown-linux-gnu", "x86-64-v4", V4)
LANES, NO_ACCESS = 16, 0
DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int16", "int32", "int64", "bool"]


def at_the_end(array):
    """A copy of an array whose last byte is the last of a page, behind which nothing is read."""
    size = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    behind = ctypes.c_void_p(start + size)
    assert libc.mprotect(behind, ctypes.c_size_t(mmap.PAGESIZE), NO_ACCESS) == 0
    copy = np.frombuffer(memory, array.dtype, array.size, size - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy


def check(inputs, result, lanes=LANES, alone=True):
    """Compiled in vectors, a function gives what the interpreter gives, and touches no byte beyond
    its arrays; ``alone``: no loop of single steps is left."""
    s = create_schedule(result, inputs, "f")
    _, l = s[result].split(s[result].axis[-1], factor=lanes)
    s[result].vectorize(l)
    rng = np.random.default_rng(0)
    arrays = [at_the_end(rng.integers(0, 100, x.shape).astype(x.dtype)) for x in inputs]
    want = np.zeros(result.shape, result.dtype)
    run(s.lower(), [*arrays, want])
    found = at_the_end(np.zeros_like(want))
    jit([s.lower()], processor=NATIVE)["f"](*arrays, found)
    np.testing.assert_array_equal(found, want)
    if alone:
        assert "llvm.masked." in compile_ir([s.lower()], AVX512)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [17, 31, 47])
def test_last_lanes(dtype, size):
    x = te.placeholder((3, size), dtype, "x")
    check(
        [x], te.compute((3, size), lambda i, j: te.select(x[i, j] > x[i, 0], x[i, j], x[i, 0]), "y")
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("before", [0, 1, 20])
def test_what_may_be_read_alone(dtype, before):
    """A padded copy: before and behind the data, zeros."""
    x = te.placeholder((2, 30), dtype, "x")

    def value(i, j):
        inside = te.all(i >= 1, i < 3, j >= before, j - before < 30)
        return te.select(inside, x[i - 1, j - before], te.const(0, dtype))

    check([x], te.compute((4, 64), value, "y"))


@settings(max_examples=30)
@given(data=st.data())
def test_selections_inside_one_another(data):
    draw = data.draw
    shape = draw(st.integers(1, 3)), draw(st.integers(LANES, 40))
    x, z = (te.placeholder(shape, "float32", name) for name in "xz")
    low, high, shift = (draw(st.integers(-3, 40)) for _ in range(3))

    def value(i, j):
        place = j + shift
        near = te.all(place >= 0, place < shape[1])
        inner = te.select(
            j < high, te.select(near, x[i, place], te.const(-1.0, "float32")), z[i, j]
        )
        return te.select(j >= low, inner, x[i, j] + z[i, 0])

    check([x, z], te.compute(shape, value, "y"), alone=False)


def test_a_division_stays_in_its_lanes():
    """Lanes beyond the end would divide by the zeros that a mask reads."""
    x, z = (te.placeholder((37,), "int32", name) for name in "xz")
    y = te.compute((37,), lambda i: te.floordiv(x[i], z[i] + 1), "y")
    check([x, z], y, alone=False)


def test_sums_of_rows_that_are_not_whole():
    x = te.placeholder((5, 49), "float32", "x")
    r = te.reduce_axis((0, 49), "r")
    y = te.compute((5,), lambda i: te.max(x[i, r], axis=r), "y")
    s = create_schedule(y, [x], "f")
    _, lane = s[y].split(r, factor=LANES)
    parts = s[s.rfactor(y, lane)]
    parts.vectorize(parts.axis[0])
    data = at_the_end(np.random.default_rng(1).standard_normal((5, 49)).astype(np.float32))
    found = np.zeros(5, np.float32)
    jit([s.lower()])["f"](data, found)
    np.testing.assert_array_equal(found, data.max(1))


def test_a_processor_without_masks_has_single_steps():
    x = te.placeholder((37,), "float32", "x")
    y = te.compute((37,), lambda i: x[i] + 1.0, "y")
    s = create_schedule(y, [x], "f")
    s[y].vectorize(s[y].split(s[y].axis[0], factor=LANES)[1])
    assert "llvm.masked." in compile_ir([s.lower()], AVX512)
    for name in ("x86-64-v3", "cortex-a53", "wasm32"):
        from vdla.compiler.targets.processor.description.processor import find_processor

        assert "llvm.masked." not in compile_ir([s.lower()], find_processor(name))
