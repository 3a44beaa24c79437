"""Tensors, computes, and the functions made of them."""

from __future__ import annotations

import numpy as np
import pytest

from vdla import te
from vdla.compiler import tir


def test_names_and_shapes_follow_the_function():
    a = te.placeholder((2, 3), "int8", "a")
    b = te.compute((3, 2), lambda y, x: a[x, y], "b")
    assert [v.name for v in b.axis] == ["y", "x"]
    assert b.shape == (3, 2)
    assert b.dtype == "int8"
    assert b.op.inputs == (a,)
    c = te.compute((2, 2, 2), lambda n, *rest: b[rest[0], n], "c")
    assert [v.name for v in c.axis] == ["n", "i1", "i2"]


def test_a_function_has_inputs_then_outputs_and_allocates_the_rest():
    a = te.placeholder((4,), "int32", "a")
    b = te.compute((4,), lambda i: a[i] + 1, "b")
    c = te.compute((4,), lambda i: b[i] * 2, "c")
    func = te.create_prim_func([a], [c])
    assert [p.name for p in func.params] == ["a", "c"]
    assert tir.evaluate(func, np.arange(4, dtype="int32"))[0].tolist() == [2, 4, 6, 8]
    both = te.create_prim_func([a], [b, c])
    assert [p.name for p in both.params] == ["a", "b", "c"]
    assert [r.tolist() for r in tir.evaluate(both, np.arange(4, dtype="int32"))] == [
        [1, 2, 3, 4],
        [2, 4, 6, 8],
    ]


def test_equal_names_are_told_apart():
    a = te.placeholder((4,), "int32", "x")
    b = te.compute((4,), lambda i: a[i] + 1, "x")
    c = te.compute((4,), lambda i: b[i] * 2, "x")
    func = te.create_prim_func([a], c)
    assert [p.name for p in func.params] == ["x", "x_2"]
    assert tir.evaluate(func, np.arange(4, dtype="int32"))[0].tolist() == [2, 4, 6, 8]
    s = te.create_schedule(c)
    assert s[b].name == "x_1"
    s[b].compute_inline()


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        (te.sum, [6, 6]),
        (te.max, [5, 4]),
        (te.min, [0, 0]),
    ],
)
def test_reductions(combine, expected):
    a = te.placeholder((2, 3), "int32", "a")
    k = te.reduce_axis((0, 3), "k")
    out = te.compute((2,), lambda i: combine(a[i, k], axis=k), "out")
    x = np.array([[0, 5, 1], [2, 0, 4]], "int32")
    assert tir.evaluate(te.create_prim_func([a], out), x)[0].tolist() == expected


def test_a_reduction_starts_from_its_init():
    a, b = te.placeholder((2, 3), "int32", "a"), te.placeholder((2,), "int32", "b")
    k = te.reduce_axis((0, 3), "k")
    out = te.compute((2,), lambda i: te.sum(a[i, k], axis=k, init=b[i]), "out")
    x, y = np.ones((2, 3), "int32"), np.array([10, 20], "int32")
    assert tir.evaluate(te.create_prim_func([a, b], out), x, y)[0].tolist() == [13, 23]


def test_maximum_of_two_values():
    a = te.placeholder((3,), "float32", "a")
    out = te.compute((3,), lambda i: te.min(te.max(a[i], 0), 6), "out")
    x = np.array([-1, 3, 9], "float32")
    assert tir.evaluate(te.create_prim_func([a], out), x)[0].tolist() == [0, 3, 6]


def test_rq_takes_packed_scales():
    a = te.placeholder((3,), "int32", "a")
    out = te.compute((3,), lambda i: te.rq(a[i], te.const(te.scale_word(3, 1))), "out")
    x = np.array([1, 3, -1], "int32")
    assert tir.evaluate(te.create_prim_func([a], out), x)[0].tolist() == [2, 4, -2]


def test_reciprocals_are_packed_scales():
    """So that rq divides by what they are of."""
    a, y = te.placeholder((3,), "int32", "a"), te.placeholder((3,), "int32", "y")
    x, by = np.array([700, -64, 5], "int32"), np.array([7, 4, 0], "int32")
    for word, expected in ((te.reciprocal, [100, -16, 0]), (te.rsqrt, [265, -32, 0])):
        out = te.compute((3,), lambda i, word=word: te.rq(a[i], word(y[i])), "out")
        func = te.create_prim_func([a, y], out)
        assert tir.evaluate(func, x, by)[0].tolist() == expected


A = te.placeholder((2, 2), "int32", "A")
K = te.reduce_axis((0, 2), "k")
BAD = {
    "rank": (lambda: te.compute((2,), lambda i: A[i]), "A: expected 2 indices, found 1"),
    "indices": (
        lambda: te.compute((2, 2), lambda i: A[i, i], "c"),
        "c: expected a function of 2 indices, found 1",
    ),
    "nested reduction": (
        lambda: te.compute((2,), lambda i: te.sum(A[i, K], K) + 1, "c"),
        "c: a reduction must be the whole body of a compute",
    ),
    "foreign axis": (
        lambda: te.compute((2,), lambda i: A[i, K], "c"),
        "c: uses axis k, which isn't one of its own",
    ),
    "init axis": (
        lambda: te.compute((2,), lambda i: te.sum(A[i, K], K, init=A[i, K]), "c"),
        "c: init uses axis k, which isn't one of its own",
    ),
    "init dtype": (
        lambda: te.sum(A[0, K], K, init=te.const(0, "int8")),
        "reduction: expected an init of int32, found int8",
    ),
    "domain": (
        lambda: te.reduce_axis((1, 4), "r"),
        "r: expected a domain (0, n) with n >= 1, found (1, 4)",
    ),
    "missing input": (
        lambda: te.create_prim_func([], te.compute((2,), lambda i: A[i, 0], "c")),
        "main: needs A, which isn't one of its inputs ()",
    ),
    "placeholder out": (
        lambda: te.create_prim_func([A], A),
        "main: expected computed outputs, found the placeholder A",
    ),
    "no axes": (lambda: A.axis, "A is a placeholder and has no axes"),
    "mantissa": (
        lambda: te.scale_word(1 << 24, 0),
        "scale_word: expected a mantissa of 24 bits, found 16777216",
    ),
    "shift": (lambda: te.scale_word(1, 64), "scale_word: expected a shift in 0..63, found 64"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors(case):
    build, text = BAD[case]
    with pytest.raises(te.TEError) as error:
        build()
    assert str(error.value) == text


def test_tensors_cannot_be_iterated():
    with pytest.raises(TypeError, match="tensor A can't be iterated"):
        list(A)
