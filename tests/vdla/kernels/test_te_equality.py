"""``==`` and ``!=`` in the functions that te calls are expressions, as in TVM."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

from vdla import build, te
from vdla.compiler.tir.ir import Binary, Const, Var
from vdla.support.errors import UserError

N = 6


def computed(body, dtype="float32"):
    """What a kernel of one input gives for 0, 1, 2, 0, 1, 2."""
    data = np.arange(N, dtype=dtype) % 3
    a = te.placeholder((N,), dtype, name="a")
    b = te.compute((N,), lambda i: body(a, i) + 0.0 * a[i], name="b")
    result = np.zeros(N, b.dtype)
    build(te.create_schedule(b.op), [a, b], "cpu")(data, result)
    return data, result


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda a, i: te.select(a[i] == 0, 1.0, a[i]), [1, 1, 2, 1, 1, 2]),
        (lambda a, i: te.select(0 == a[i], 1.0, a[i]), [1, 1, 2, 1, 1, 2]),  # noqa: SIM300
        (lambda a, i: te.if_then_else(i != 2, a[i], 7.0), [0, 1, 7, 0, 1, 2]),
        (lambda a, i: (i == 2).astype("float32") * a[i], [0, 0, 2, 0, 0, 0]),
        (lambda a, i: te.select(te.all(i == i, a[i] != 1.0), 5.0, 6.0), [5, 6, 5, 5, 6, 5]),
        (lambda a, i: te.select(te.any(i == 0, i == 5), 5.0, 6.0), [5, 6, 6, 6, 6, 5]),
        (lambda a, i: te.select(~(i % 2 == 0), 5.0, 6.0), [6, 5, 6, 5, 6, 5]),
        (lambda a, i: te.select((i == 1) | (i == 4), 5.0, 6.0), [6, 5, 6, 6, 5, 6]),
    ],
)  # fmt: skip
def test_comparisons_are_values(body, expected):
    assert np.array_equal(computed(body)[1], np.array(expected, np.float32))


def test_comparisons_on_a_gpu(gpu):
    body = lambda a, i: te.select(a[i] == i.astype("float32"), 1.0, 0.0)  # noqa: E731
    a = te.placeholder((N,), "float32", name="a")
    b = te.compute((N,), lambda i: body(a, i), name="b")
    s = te.create_schedule(b.op)
    s[b].bind(b.axis[0], te.thread_axis("threadIdx.x"))
    result = np.zeros(N, np.float32)
    build(s, [a, b], "gpu")(np.arange(N, dtype=np.float32) % 3, result)
    assert result.tolist() == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "body",
    [
        lambda a, i: 1.0 if i == 2 else a[i],
        lambda a, i: 1.0 if a[i] != 0 else a[i],
        lambda a, i: a[i] if i == i and i < 3 else 0.0,
        lambda a, i: a[i] if i in (Var("j"), i + 1) else 0.0,
    ],
)
def test_a_python_condition_is_refused(body):
    """It would be decided once, for all elements."""
    with pytest.raises(UserError, match=r"an expression has no truth value; use te\.all, te\.any"):
        computed(body)


def test_two_axes():
    a = te.placeholder((N,), "float32", name="a")
    b = te.compute((N, N), lambda i, j: te.if_then_else(i == j, a[i], 0.0), name="b")
    result = np.ones((N, N), np.float32)
    build(te.create_schedule(b.op), [a, b], "cpu")(np.arange(N, dtype=np.float32), result)
    assert np.array_equal(result, np.diag(np.arange(N, dtype=np.float32)))


def test_statements_and_reducers():
    def body(ins, outs):
        ib = te.ir_builder.create()
        data, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, N, "i") as i:
            with ib.if_scope((i % 2) == 0):
                out[i] = data[i] + 10.0
            with ib.else_scope():
                out[i] = te.select(data[i] != 1.0, 3.0, 4.0)
        return ib.get()

    a = te.placeholder((N,), "float32", name="a")
    b = te.extern((N,), [a], body, name="b", dtype="float32")
    result = np.zeros(N, np.float32)
    build(te.create_schedule(b.op), [a, b], "cpu")(np.arange(N, dtype=np.float32) % 3, result)
    assert result.tolist() == [10, 4, 12, 3, 11, 3]

    # The last value that isn't zero: 0 is neutral, and the reducer compares.
    last = te.comm_reducer(lambda x, y: te.select(y == 0, x, y), lambda t: te.const(0, t), "last")
    k = te.reduce_axis((0, N), "k")
    c = te.compute((1,), lambda i: last(a[k], axis=k), name="c")
    result = np.zeros(1, np.float32)
    build(te.create_schedule(c.op), [a, c], "cpu")(np.float32([0, 5, 0, 3, 0, 0]), result)
    assert result.tolist() == [3]


@pytest.mark.parametrize(
    ("use", "where"),
    [
        (lambda c: te.select(c, 1.0, 2.0), "if_then_else"),
        (lambda c: te.if_then_else(c, 1.0, 2.0), "if_then_else"),
        (lambda c: te.all(c), "all"),
        (lambda c: te.any(c), "any"),
        (lambda c: te.ir_builder.create().if_scope(c).__enter__(), "if_scope"),
    ],
)
def test_a_comparison_of_trees_is_no_condition(use, where):
    """Outside of what te calls == compares trees, and what it gives is no condition."""
    with pytest.raises(UserError) as caught:
        use(Var("i") == 2)
    assert str(caught.value) == (
        f"{where}: expected a condition, as i.equal(j), found False; outside of a function that te "
        "calls, == compares two expressions as trees"
    )


def test_trees_are_compared_elsewhere():
    i, j = Var("i"), Var("j")
    assert (i == i, i == j, i != j) == (True, False, True)
    assert i + 1 == i + 1
    assert i + 1 != j + 1
    assert Const(1, "int32") == Const(1, "int32")
    assert Const(1, "int32") != Const(1, "int8")
    assert {i + 1: "a"}[i + 1] == "a"
    assert (i + 1 == "text", i == None, i != None) == (False, False, True)  # noqa: E711


def test_a_thread_compares_trees_while_another_writes_values():
    results = []

    def body(i):
        thread = Thread(target=lambda: results.append(i + 1 == i + 1))
        thread.start()
        thread.join()
        results.append(type(i + 1 == i + 1))
        return te.const(1.0)

    te.compute((4,), body, name="b")
    assert results == [True, Binary]


def test_an_error_in_a_function_ends_its_meaning():
    with pytest.raises(ZeroDivisionError):
        te.compute((4,), lambda i: 1 // 0, name="b")
    assert Var("i") + 1 != Var("i") + 1
    assert not isinstance(Var("i") == Var("j"), Binary)
