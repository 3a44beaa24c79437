"""Reducers that a user declares, of one value and of tuples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla import te
from vdla.compiler import tir
from vdla.compiler.targets.processor.codegen import llvm
from vdla.compiler.te import TEError
from vdla.compiler.tir.values import value_ranges

saturating = te.comm_reducer(
    lambda x, y: te.min(te.max(x + y, -100), 100), lambda t: te.const(0, t), "saturating"
)
either = te.comm_reducer(lambda x, y: x | y, lambda t: te.const(0, t), "either")
argmax = te.comm_reducer(
    lambda x, y: (
        te.select(te.any(x[1] > y[1], te.all(te.equal(x[1], y[1]), x[0] <= y[0])), x[0], y[0]),
        te.maximum(x[1], y[1]),
    ),
    lambda t0, t1: (te.max_value(t0), te.min_value(t1)),
    "argmax",
)
WHOLE = (-(1 << 31), (1 << 31) - 1)


def reduced(reducer, dtype="int32", shape=(3, 5), **more):
    a = te.placeholder(shape, dtype, "A")
    k = te.reduce_axis((0, shape[1]), "k")
    return a, te.compute(shape[:1], lambda i: reducer(a[i, k], axis=k, **more), "C")


def everywhere(inputs, outputs, *arrays):
    """The interpreter's results, which native code repeats."""
    func = te.create_prim_func(inputs, outputs)
    found = tir.evaluate(func, *arrays)
    native = [np.zeros_like(x) for x in found]
    llvm.jit([func])["main"](*arrays, *native)
    for x, y in zip(found, native, strict=True):
        np.testing.assert_array_equal(x, y)
    return found


X = np.random.default_rng(0).integers(-60, 60, (3, 5)).astype("int32")


@pytest.mark.parametrize(
    ("reducer", "expected"),
    [
        (te.prod, X.prod(axis=1, dtype="int32")),
        (either, np.bitwise_or.reduce(X, axis=1)),
        (te.sum, X.sum(axis=1)),
    ],
)
def test_reducers_of_one_value(reducer, expected):
    a, c = reduced(reducer)
    np.testing.assert_array_equal(everywhere([a], c, X)[0], expected)


def test_a_reducer_that_is_no_operator():
    a, c = reduced(saturating)
    want = np.zeros(3, "int32")
    for column in X.T:
        want = np.clip(want + column, -100, 100)
    np.testing.assert_array_equal(everywhere([a], c, X)[0], want)


def test_steps_where_a_condition_fails_do_not_count():
    a = te.placeholder((3, 5), "int32", "A")
    k = te.reduce_axis((0, 5), "k")
    c = te.compute((3,), lambda i: te.prod(a[i, k], axis=k, where=a[i, k] > 0), "C")
    want = np.where(X > 0, X, 1).prod(axis=1, dtype="int32")
    np.testing.assert_array_equal(everywhere([a], c, X)[0], want)


def test_a_reducer_of_two_values_combines_them():
    a = te.placeholder((3,), "int32", "A")
    c = te.compute((3,), lambda i: te.prod(te.sum(a[i], 2), a[i]), "C")
    np.testing.assert_array_equal(everywhere([a], c, X[:, 0].copy())[0], (X[:, 0] + 2) * X[:, 0])


@pytest.mark.parametrize(
    ("combine", "shown"),
    [
        (lambda x, y: te.select(x < y, x, y), "min(C[i], A[i, k])"),
        (lambda x, y: te.select(x >= y, x, y), "max(C[i], A[i, k])"),
        (lambda x, y: te.select(x > y, y, x), "min(C[i], A[i, k])"),
        (lambda x, y: y + x, "A[i, k] + C[i]"),
    ],
)
def test_a_combination_that_is_an_operator_is_it(combine, shown):
    _, c = reduced(te.comm_reducer(combine, lambda t: te.const(0, t)))
    s = te.create_schedule(c)
    assert tir.show(s.lower()).splitlines()[-1].strip() == f"C[i] = {shown}"


@settings(max_examples=40)
@given(st.data())
def test_values_stay_within_what_is_known(data):
    """The known interval of a reduction holds what it computes."""
    low = data.draw(st.integers(-20, 20))
    high = data.draw(st.integers(low, 20))
    steps = data.draw(st.integers(1, 6))
    reducer = data.draw(st.sampled_from([te.prod, either, saturating, te.sum, te.max, te.min]))
    a = te.placeholder((2, steps), "int32", "A", value_range=(low, high))
    k = te.reduce_axis((0, steps), "k")
    c = te.compute((2,), lambda i: reducer(a[i, k], axis=k), "C")
    func = te.create_prim_func([a], c)
    known = value_ranges(func)["C"]
    x = np.random.default_rng(data.draw(st.integers(0, 99))).integers(low, high + 1, (2, steps))
    (found,) = tir.evaluate(func, x.astype("int32"))
    assert known[0] <= found.min() <= found.max() <= known[1]


def test_of_a_user_s_reducer_the_whole_dtype_is_known():
    assert [
        value_ranges(te.create_schedule(reduced(r)[1]).mod)["C"] for r in (te.prod, saturating)
    ] == [WHOLE, WHOLE]


# Tuples ----------------------------------------------------------------------------------------


def arg_maximum(n=4, m=7):
    a = te.placeholder((n, m), "float32", "A")
    k = te.reduce_axis((0, m), "k")
    index, value = te.compute((n,), lambda i: argmax((k, a[i, k]), axis=k), "T")
    return a, index, value


def test_a_tuple_is_updated_from_the_old_values():
    a, index, value = arg_maximum()
    assert [t.name for t in (index, value)] == ["T_v0", "T_v1"]
    assert [t.dtype for t in (index, value)] == ["int32", "float32"]
    x = np.random.default_rng(1).integers(0, 4, (4, 7)).astype("float32")
    found = everywhere([a], [index, value], x)
    np.testing.assert_array_equal(found[0], x.argmax(axis=1))
    np.testing.assert_array_equal(found[1], x.max(axis=1))


def test_of_a_tuple_one_tensor_can_be_what_is_wanted():
    a, index, _ = arg_maximum()
    c = te.compute((4,), lambda i: index[i] * 2, "C")
    x = np.random.default_rng(1).normal(size=(4, 7)).astype("float32")
    np.testing.assert_array_equal(everywhere([a], c, x)[0], x.argmax(axis=1) * 2)


def test_plain_tuples():
    a = te.placeholder((4,), "int32", "A")
    total, difference = te.compute((4,), lambda i: (a[i] + 1, a[i] * 2 - i), "T")
    x = np.arange(4, dtype="int32")
    found = everywhere([a], [total, difference], x)
    np.testing.assert_array_equal(found, [x + 1, x])


def test_a_swap_needs_both_old_values():
    """fibonacci-like: (a, b) becomes (b, a + b) at every step; storing a first would be wrong."""
    turn = te.comm_reducer(
        lambda x, y: (x[1] + y[0], x[0] + x[1] + y[1]),
        lambda t0, t1: (te.const(0, t0), te.const(1, t1)),
    )
    a = te.placeholder((1, 6), "int32", "A")
    k = te.reduce_axis((0, 6), "k")
    outs = te.compute((1,), lambda i: turn((a[i, k], a[i, k]), axis=k), "T")
    found = everywhere([a], outs, np.zeros((1, 6), "int32"))
    assert [int(x[0]) for x in found] == [8, 13]


def test_both_tensors_have_one_stage():
    _, index, value = arg_maximum(5, 9)
    s = te.create_schedule([index, value])
    assert s[index] is s[value] is s["T"] is s["T_v1"]
    stage = s[index]
    outer, inner = stage.split(stage.reduce_axis[0], factor=4)
    yo, yi = stage.split(stage.axis[0], factor=2)
    stage.reorder(yo, outer, yi, inner)
    stage.unroll(inner)
    stage.parallel(yo)
    x = np.random.default_rng(1).integers(0, 4, (5, 9)).astype("float32")
    for func in (s.mod, s.lower()):
        found = tir.evaluate(func, x)
        np.testing.assert_array_equal(found[0], x.argmax(axis=1))
    again = te.create_schedule([index, value])
    again.replay(s.trace)
    assert tir.show(again.mod) == tir.show(s.mod)


def test_what_a_stage_of_several_tensors_does_not_take():
    from vdla.compiler.schedule import ScheduleError

    _, index, value = arg_maximum()
    c = te.compute((4,), lambda i: index[i] + value[i].astype("int32"), "C")
    s = te.create_schedule(c)
    takes = (
        "expected a stage of one tensor by te.compute, found T_v0, T_v1, computed together; it "
        "takes split, fuse, reorder, unroll, vectorize, parallel, bind, pragma, prefetch, "
        "cache_read, rfactor"
    )
    refused = {
        "compute_inline": lambda: s[index].compute_inline(),
        "compute_at": lambda: s[index].compute_at(s[c], c.axis[0]),
        "set_scope": lambda: s[value].set_scope("near"),
        "double_buffer": lambda: s[value].double_buffer(),
        "cache_write": lambda: s.cache_write(value, "near"),
        "tensorize": lambda: s[value].tensorize(s[value].axis[0], ()),
    }
    for primitive, action in refused.items():
        with pytest.raises(ScheduleError) as error:
            action()
        assert str(error.value) == f"{primitive} T: {takes}"


def test_the_tensors_of_a_tuple_can_be_copied():
    _, index, value = arg_maximum()
    c = te.compute((4,), lambda i: index[i] + value[i].astype("int32"), "C")
    s = te.create_schedule(c)
    copy = s.cache_read(value, "near", [c])
    s[copy].compute_at(s[c], c.axis[0])
    x = np.random.default_rng(1).integers(0, 4, (4, 7)).astype("float32")
    (found,) = tir.evaluate(s.lower(), x)
    np.testing.assert_array_equal(found, x.argmax(axis=1) + x.max(axis=1).astype("int32"))


A = te.placeholder((2, 2), "int32", "A")
K = te.reduce_axis((0, 2), "k")
PAIR = te.comm_reducer(lambda x, y: (x[0], y[1]), lambda *t: (0, 0), "pair")
BAD = {
    "one of two": (
        lambda: te.compute((2,), lambda i: PAIR((A[i, K], K), K)[0], "c"),
        "c: expected all 2 values of one reduction (pair), in order, as the whole body, found 1 "
        "values that are not these",
    ),
    "results": (
        lambda: te.comm_reducer(lambda x, y: x[0], lambda *t: (0, 0), "f")((A[0, K], K), K),
        "f: expected 2 values of fcombine, one for each that is reduced, found 1",
    ),
    "identities": (
        lambda: te.comm_reducer(lambda x, y: x, lambda *t: 0, "f")((A[0, K], K), K),
        "f: expected 2 values of fidentity, one for each that is reduced, found 1",
    ),
    "dtype": (
        lambda: te.comm_reducer(lambda x, y: x < y, lambda t: 0, "f")(A[0, K], K),
        "f: expected fcombine to give int32, as the values that are reduced, found bool; cast it",
    ),
    "inits": (
        lambda: PAIR((A[0, K], K), K, init=(A[0, 0],)),
        "pair: expected 2 values of init, one for each that is reduced, found 1",
    ),
    "axis": (lambda: PAIR((A[0, K], K), 3), "pair: expected reduce axes to reduce over, found 3"),
    "nothing": (
        lambda: te.compute((2,), lambda i: (), "c"),
        "c: expected at least one value, found none",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors(case):
    build, text = BAD[case]
    with pytest.raises(TEError) as error:
        build()
    assert str(error.value) == text
