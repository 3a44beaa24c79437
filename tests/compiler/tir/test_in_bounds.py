"""Accesses outside of their buffers are refused, wherever the program comes from."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vdla
from vdla import te
from vdla.compiler.tir.arith import simplify
from vdla.compiler.tir.in_bounds import check_bounds
from vdla.compiler.tir.ir import Buffer, For, If, IRError, Load, PrimFunc, Select, Store, Var, const
from vdla.compiler.tir.parser import ParseError, parse
from vdla.compiler.tir.visitor import substitute_expr
from vdla.runtime.errors import InputError

ADVICE = "; guard the access with te.select, or clamp the index with te.minimum and te.maximum"
TEXT = """func f(A: int32[6, 4], I: int32[5], D: int32[6, 4], C: int32[6, 4]):
    for i in {rows}:
        for l in 4:
            {stmt}
"""


def program(stmt, rows=6):
    return TEXT.format(rows=rows, stmt=stmt)


# --- what is refused, and how ---------------------------------------------------------------------


def test_an_expression_that_reads_beyond_its_tensor():
    a = te.placeholder((6, 4), "int32", "A")
    c = te.compute((6, 4), lambda i, l: a[i + 6, l], "C")
    with pytest.raises(IRError) as refused:
        te.create_schedule(c)
    assert str(refused.value) == (
        "main: A[i + 6, l]: expected index 0 in 0..5, found i + 6 in 6..11" + ADVICE
    )


@pytest.mark.parametrize("target", ["cpu", "tiny"])
def test_a_text_that_writes_beyond_its_buffer(target):
    with pytest.raises(ParseError) as refused:
        vdla.parse(program("C[i, l] = A[0, l]", rows=600_000), target)
    assert str(refused.value).startswith(
        "line 4, column 13: f: C[i, l]: expected index 0 in 0..5, found i in 0..599999" + ADVICE
    )


def test_a_call_that_reads_beyond_its_buffer():
    text = """func f(A: int32[6, 4], C: int32[6, 4]):
    alloc x: int32[6, 4] @"vdla.acc"
    for i in 6:
        load_acc(dst=x[i, 0], src=A[i + 100000, 0])
    for j in 6:
        store32(out=C[j, 0], acc=x[j, 0])
"""
    with pytest.raises(ParseError, match=r"A\[i \+ 100000, 0 \+: 4\]: expected index 0 in 0\.\.5"):
        vdla.parse(text, "tiny")
    kernel = vdla.build(vdla.parse(text.replace(" + 100000", ""), "tiny"), target="tiny")
    a, c = np.arange(24, dtype=np.int32).reshape(6, 4), np.zeros((6, 4), np.int32)
    kernel(a, c)
    np.testing.assert_array_equal(c, a)


REFUSED = (
    "C[i + 1, l] = 0",
    "C[i - 1, l] = 0",
    "C[i, l] = A[i, l * 2]",
    "C[i, l] = A[i * 4 // 3, l]",
    "C[i, l] = select(i < 7, A[i + 1, l], 0)",
    "C[i, l] = select(i * 8 + l < 37, A[(i * 8 + l) // 3 // 2, l], 0)",
    "C[i, l] = select(i >= 2 or l > 0, A[i - 1, l], 0)",
    "C[i, l] = select(i >= 1, 0, A[i - 1, l])",
    "C[A[i, l], l] = A[i, l] * 2",  # A isn't written, but 2 A isn't A
    "C[I[i] * 2, l] = 0",
    "C[I[i] + I[l], l] = 0",
    "C[C[i, l], l] = 0",  # data that the function writes
)
PROVED = (
    "C[5 - i, l] = 0",
    "C[i, l] = select(i < 5, A[i + 1, l], 0)",
    "C[i, l] = select(i < 1, 0, A[i - 1, l])",
    "C[i, l] = select(i >= 1 and l >= 2, A[i - 1, l - 2], 0)",
    "C[i, l] = select(not (i < 1 or l < 2), A[i - 1, l - 2], 0)",
    "C[i, l] = select(i * 4 + l < 22, A[(i * 4 + l + 2) // 4, (i * 4 + l + 2) % 4], 0)",
    "C[i, l] = select(i * 8 + l < 36, A[(i * 8 + l) // 3 // 2, l], 0)",
    "C[i, l] = A[min(i + 3, 5), max(l - 2, 0)]",
    "C[i, l] = A[select(i < 3, i + 3, i - 3), l]",
    "C[i, l] = A[max(min(D[i, l] * 7, 5), 0), l]",
    "C[i, l] = select(D[i, l] >= 0 and D[i, l] < 6, A[D[i, l], l], 0)",
    "C[i, l] = A[D[i, l] & 3, l]",
    "C[i, l] = A[abs(D[i, l]) % 6, l]",
)  # fmt: skip


@pytest.mark.parametrize("stmt", REFUSED)
def test_refused(stmt):
    func = parse(program(stmt.replace("C[A[i, l], l]", "C[A[i, l] * 2, l]")), bounds=False)
    with pytest.raises(IRError, match="expected index"):
        check_bounds(func)


@pytest.mark.parametrize("stmt", PROVED)
def test_proved(stmt):
    assert check_bounds(parse(program(stmt), bounds=False)) == {}


ALLOCATED = """func f(A: int32[6], I: int32[6], C: int32[6]):
    alloc at: int32[6]
    for i in 6:
        {first}
        {second}
"""


def test_what_a_stage_computes_is_an_index_once_it_is_stored():
    store, load = "at[i] = min(max(I[i], 0), 5)", "C[i] = A[at[i]]"
    assert check_bounds(parse(ALLOCATED.format(first=store, second=load), bounds=False)) == {}
    with pytest.raises(ParseError, match=r"A\[at\[i\]\]: expected index 0 in 0\.\.5"):
        parse(ALLOCATED.format(first=load, second=store))


# --- data in indices ------------------------------------------------------------------------------


def rows_by_number():
    """C[i] = A[I[i]], and what is built from it."""
    a, i = te.placeholder((6, 4), "int32", "A"), te.placeholder((5,), "int32", "I")
    c = te.compute((5, 4), lambda n, l: a[i[n] + 1, l], "C")
    return vdla.build(te.create_schedule(c), [a, i, c], "cpu")


def test_data_in_an_index_is_checked_at_the_call():
    kernel = rows_by_number()
    a, c = np.arange(24, dtype=np.int32).reshape(6, 4), np.zeros((5, 4), np.int32)
    at = np.array([-1, 4, 0, 2, 1], np.int32)
    kernel(a, at, c)
    np.testing.assert_array_equal(c, a[at + 1])
    for wrong in (5, -2, 100_000):
        at[2] = wrong
        with pytest.raises(InputError, match=r"main: I: expected values in -1\.\.4"):
            kernel(a, at, c)


def test_what_is_needed_of_a_parameter():
    text = program("C[i, l] = A[I[max(i - 1, 0)] - 2, l] + select(I[0] >= 0, A[I[0], l], 0)")
    assert check_bounds(parse(text.replace("for i in 6", "for i in 5"))) == {"I": (2, 5)}


# --- against all values of the loops --------------------------------------------------------------

I, J = Var("i"), Var("j")


def indices(depth):
    """Index expressions of two loops."""
    leaf = st.one_of(st.sampled_from([I, J]), st.integers(-6, 12).map(const))
    if not depth:
        return leaf
    inner = indices(depth - 1)
    return st.one_of(
        leaf,
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, k: a * k, inner, st.integers(-3, 4)),
        st.builds(lambda a, k: a // k, inner, st.integers(1, 5)),
        st.builds(lambda a, k: a % k, inner, st.integers(1, 5)),
        st.builds(te.minimum, inner, inner),
        st.builds(te.maximum, inner, inner),
        st.builds(Select, conditions(0), inner, inner),
    )


def conditions(depth):
    """Conditions on two loops."""
    index = indices(0)
    leaf = st.one_of(
        st.builds(lambda a, b: a < b, index, index),
        st.builds(lambda a, b: a >= b, index, index),
        st.builds(lambda a, b: a.equal(b), index, index),
    )
    if not depth:
        return leaf
    inner = conditions(depth - 1)
    return st.one_of(leaf, st.builds(te.all, inner, inner), st.builds(te.any, inner, inner))


def value_of(expr, i, j):
    """An expression where the loops are at i and j."""
    known = {I: const(i), J: const(j)}
    return simplify(substitute_expr(expr, known)).value


@settings(max_examples=300)
@given(index=indices(2), cond=conditions(1), size=st.integers(1, 12), how=st.integers(0, 2))
def test_what_is_proved_holds(index, cond, size, how):
    """For all values of the loops, where the condition lets the access run."""
    a, c = Buffer("a", (size,), "int32"), Buffer("c", (1,), "int32")
    load = Load(a, (index,))
    body = [
        Store(c, (const(0),), Select(cond, load, const(0))),
        If(cond, Store(a, (index,), const(1))),
        If(cond, Store(c, (const(0),), const(0)), Store(c, (const(0),), load)),
    ][how]
    func = PrimFunc("f", (a, c), For(I, 5, "serial", For(J, 4, "serial", body)))
    try:
        check_bounds(func)
    except IRError:
        return
    for i, j in product(range(5), range(4)):
        if bool(value_of(cond, i, j)) == (how != 2):
            assert 0 <= value_of(index, i, j) < size


def test_sums_of_floats_beside_an_index():
    """A sum of float32 has no interval of integers."""
    a, at = te.placeholder((6,), "float32", "A"), te.placeholder((4,), "int32", "I")
    k = te.reduce_axis((0, 4), "k")
    count = te.compute((2,), lambda i: te.sum(at[k].astype("float32"), axis=k), "count")
    c = te.compute((2,), lambda i: count[i] + a[te.minimum(te.maximum(at[i], 0), 5)], "C")
    vdla.build(te.create_schedule(c), [a, at, c], "cpu")
