"""A vectorized loop computes what it computes step by step."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.kernel_numbers import corners
from vdla import te
from vdla.compiler import tir
from vdla.compiler.schedule import create_schedule
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.tir.ir import binary

RNG = np.random.default_rng(0)


def vectorized(out, inputs, factor):
    """The function, its last axis in vectors of ``factor``."""
    s = create_schedule(out, inputs)
    _, lanes = s[out].split(s[out].op.axis[-1], factor=min(factor, out.shape[-1]))
    s[out].vectorize(lanes)
    return s.lower()


def both(func, *arrays):
    """(native result, interpreted result)."""
    (expected,) = tir.evaluate(func, *arrays)
    found = np.zeros_like(expected)
    llvm.jit([func])["main"](*arrays, found)
    return found, expected


def has_vector(func, kind):
    """Whether unoptimized code has vectors of a type."""
    return f"<{kind}>" in llvm.compile_ir([func])


INDICES = {
    "as it is": lambda i: i,
    "from another place on": lambda i: i + 3,
    "every second": lambda i: 2 * i,
    "backwards": lambda i: 31 - i,
    "the same for all": lambda i: i // 64,
    "in pairs": lambda i: i // 2,
    "in turns": lambda i: i % 5,
    "by a table": None,
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_lanes_read_from_anywhere(index, dtype):
    a, at = (
        te.placeholder((64,), dtype, "a"),
        te.placeholder((32,), "int32", "at", value_range=(0, 63)),
    )
    place = INDICES[index] or (lambda i: at[i])
    out = te.compute((32,), lambda i: a[place(i)], "out")
    func = vectorized(out, [a, at], 16)
    x = RNG.integers(0, 2 if dtype == "bool" else 100, 64).astype(dtype)
    np.testing.assert_array_equal(*both(func, x, RNG.integers(0, 64, 32, dtype=np.int32)))
    assert has_vector(func, {"float32": "16 x float", "int8": "16 x i8", "bool": "16 x i8"}[dtype])


@pytest.mark.parametrize("stride", [1, 2, -1, 3])
def test_lanes_write_anywhere(stride):
    first = 31 if stride < 0 else 0
    a, out = tir.Buffer("a", (16,), "float32"), tir.Buffer("out", (48,), "float32")
    i = tir.Var("i")
    store = tir.Store(out, (first + i * stride,), tir.ir.Load(a, (i,)))
    func = tir.PrimFunc("main", (a, out), tir.For(i, 16, "vectorized", store))
    x, found = RNG.standard_normal(16).astype("f4"), np.zeros(48, "f4")
    llvm.jit([func])["main"](x, found)
    expected = np.zeros(48, "f4")
    expected[first + np.arange(16) * stride] = x
    np.testing.assert_array_equal(found, expected)


def test_of_lanes_that_write_one_element_the_last_one_counts():
    a, out = tir.Buffer("a", (8,), "int32"), tir.Buffer("out", (1,), "int32")
    i = tir.Var("i")
    store = tir.Store(out, (tir.ir.const(0, "int32"),), tir.ir.Load(a, (i,)))
    func = tir.PrimFunc("main", (a, out), tir.For(i, 8, "vectorized", store))
    found = np.zeros(1, np.int32)
    llvm.jit([func])["main"](np.arange(8, dtype=np.int32), found)
    assert found == [7]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "float32"])
@pytest.mark.parametrize("op", ["add", "mul", "floordiv", "floormod", "min", "max", "lt", "ne"])
def test_operators(op, dtype):
    if dtype == "float32" and op.startswith("floor"):
        op = "div"
    a, b = te.placeholder((32,), dtype, "a"), te.placeholder((32,), dtype, "b")
    out = te.compute((32,), lambda i: binary(op, a[i], b[i // 8]), "out")
    x, y = (RNG.integers(1, 90, 32).astype(dtype) for _ in range(2))
    x = x - 40 if dtype != "uint8" else x
    func = vectorized(out, [a, b], 8)
    np.testing.assert_array_equal(*both(func, x.astype(dtype), y))


@pytest.mark.parametrize("source", ["int8", "uint8", "int32", "float32", "bool"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32", "float32", "float64", "bool"])
def test_casts(source, target):
    a = te.placeholder((32,), source, "a")
    out = te.compute((32,), lambda i: a[i].astype(target), "out")
    x = RNG.integers(0, 2 if source == "bool" else 100, 32).astype(source)
    np.testing.assert_array_equal(*both(vectorized(out, [a], 8), x))


@pytest.mark.parametrize("function", ["exp", "sqrt", "erf", "abs", "tanh"])
def test_functions(function):
    a = te.placeholder((32,), "float32", "a")
    out = te.compute((32,), lambda i: getattr(te, function)(a[i]), "out")
    x = RNG.uniform(0.1, 3, 32).astype("f4")
    np.testing.assert_allclose(*both(vectorized(out, [a], 16), x), rtol=1e-6)


def test_requantization():
    a, word = te.placeholder((64,), "int32", "a"), te.placeholder((1,), "int32", "word")
    out = te.compute((64,), lambda i: te.requantize(a[i], word[0], 3, -128, 127), "out")
    x = RNG.integers(-(2**31), 2**31, 64).astype(np.int32)
    scale = np.array([30 << 24 | 0xA00001], np.int32)
    np.testing.assert_array_equal(*both(vectorized(out, [a, word], 16), x, scale))


@pytest.mark.parametrize("function", ["reciprocal", "rsqrt"])
def test_reciprocals(function):
    a = te.placeholder((320,), "int32", "a")
    out = te.compute((320,), lambda i: getattr(te, function)(a[i]), "out")
    np.testing.assert_array_equal(*both(vectorized(out, [a], 16), corners(320)))


@settings(max_examples=15)
@given(size=st.integers(1, 70), factor=st.sampled_from([2, 3, 4, 8, 16, 64, 128]),
       low=st.integers(0, 30), high=st.integers(0, 40))  # fmt: skip
def test_conditions_on_lanes(size, factor, low, high):
    """A padding that cuts through a vector, and a tail that doesn't fill one."""
    a = te.placeholder((40,), "int32", "a")

    def value(i):
        inside = te.all(i - low >= 0, i - low < high)
        return te.if_then_else(inside, a[te.minimum(i - low, 39)], te.const(-1, "int32"))

    out = te.compute((size,), value, "out")
    x = RNG.integers(0, 100, 40).astype(np.int32)
    np.testing.assert_array_equal(*both(vectorized(out, [a], factor), x))


def test_sums_of_products_are_fused_where_the_processor_can():
    a, b = te.placeholder((4, 16), "float32", "a"), te.placeholder((4,), "float32", "b")
    k = te.reduce_axis((0, 4), "k")
    out = te.compute((16,), lambda i: te.sum(a[k, i] * b[k], axis=k), "out")
    s = create_schedule(out, [a, b])
    s[out].vectorize(s[out].op.axis[0])
    func = s.lower()
    text = llvm.compile_ir([func])
    assert re.search(r"call <16 x float> @.llvm.fmuladd.v16f32.", text)
    x, y = RNG.standard_normal((4, 16)).astype("f4"), RNG.standard_normal(4).astype("f4")
    np.testing.assert_allclose(*both(func, x, y), rtol=1e-5)
