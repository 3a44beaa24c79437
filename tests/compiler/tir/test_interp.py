"""The interpreter against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler import te, tir
from vdla.compiler.tir import Buffer, For, InterpError, Load, PrimFunc, Store, Var, evaluate, run
from vdla.compiler.tir.ir import Select, const
from vdla.compiler.tir.parser import parse

RNG = np.random.default_rng(0)


def func_of(*tensors):
    *inputs, out = tensors
    return te.create_prim_func(inputs, out)


def test_matmul():
    a, b = te.placeholder((5, 7), "int8", "a"), te.placeholder((7, 3), "int8", "b")
    k = te.reduce_axis((0, 7), "k")
    c = te.compute(
        (5, 3), lambda y, x: te.sum(a[y, k].astype("int32") * b[k, x].astype("int32"), axis=k), "c"
    )
    x, w = (RNG.integers(-128, 128, t.shape).astype("int8") for t in (a, b))
    (found,) = evaluate(func_of(a, b, c), x, w)
    np.testing.assert_array_equal(found, x.astype("int32") @ w.astype("int32"))


def test_float_reduction_keeps_the_order_of_the_loops():
    a = te.placeholder((1000,), "float32", "a")
    k = te.reduce_axis((0, 1000), "k")
    total = te.compute((1,), lambda i: te.sum(a[k], axis=k), "total")
    x = RNG.standard_normal(1000).astype("float32")
    expected = np.float32(0)
    for value in x:
        expected += value
    assert evaluate(func_of(a, total), x)[0][0] == expected


def test_integers_wrap():
    a = te.placeholder((4,), "int8", "a")
    b = te.compute((4,), lambda i: a[i] * a[i] + a[i], "b")
    x = np.array([127, -128, 100, 3], "int8")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(evaluate(func_of(a, b), x)[0], x * x + x)


def test_functions():
    a = te.placeholder((64,), "float32", "a")
    x = np.linspace(-3, 3, 64, dtype="float32")
    cases = {te.exp: np.exp, te.tanh: np.tanh, te.floor: np.floor, te.rint: np.rint, te.abs: np.abs}
    for ours, theirs in cases.items():
        out = te.compute((64,), lambda i, f=ours: f(a[i]), "out")
        np.testing.assert_array_equal(evaluate(func_of(a, out), x)[0], theirs(x))


def test_selects_evaluate_the_chosen_side_only():
    a = te.placeholder((4,), "int32", "a")
    b = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), a[i - 1], -1), "b")
    x = np.arange(4, dtype="int32")
    assert evaluate(func_of(a, b), x)[0].tolist() == [-1, 0, 1, 2, 3, -1]


def test_loads_out_of_bounds_are_found():
    a = te.placeholder((4,), "int32", "a")
    b = te.compute((6,), lambda i: a[i], "b")
    with pytest.raises(InterpError) as error:
        evaluate(func_of(a, b), np.arange(4, dtype="int32"))
    assert str(error.value) == "a: dimension 0: expected an index in 0..3, found 4"


def test_a_recurrence_runs_in_order():
    a = Buffer("a", (6,), "int32")
    i = Var("i")
    before = Select(i > 0, Load(a, (i - 1,)), const(1))
    body = For(i, 6, "serial", Store(a, (i,), before + Load(a, (i,))))
    x = np.arange(6, dtype="int32")
    run(PrimFunc("scan", (a,), body), [x])
    assert x.tolist() == [1, 2, 4, 7, 11, 16]


def test_an_init_may_have_loops_of_its_own():
    func = parse("""
func main(a: int32[6, 5], out: int32[6]):
    for k in 5:
        block total(vk: r5 = k):
            reads a[0 +: 6, vk]
            writes out[0 +: 6]
            init:
                for z in 6:
                    out[z] = z * 7
            for y in 6:
                out[y] = out[y] + a[y, vk]
""")
    x = RNG.integers(-99, 99, (6, 5)).astype("int32")
    (found,) = evaluate(tir.verify(func), x)
    np.testing.assert_array_equal(found, x.sum(axis=1) + np.arange(6) * 7)


def test_arrays_are_checked():
    a = te.placeholder((4,), "int32", "a")
    func = func_of(a, te.compute((4,), lambda i: a[i], "b"))
    good = np.zeros(4, "int32")
    for bad, text in (
        ([good], "main: expected 2 arrays, found 1"),
        ([good, np.zeros(4, "int8")], "main: b: expected int32[4], found int8[4]"),
        ([np.zeros(8, "int32")[::2], good], "main: a: expected a C-contiguous array"),
    ):
        with pytest.raises(InterpError) as error:
            run(func, bad)
        assert str(error.value) == text


def test_large_nests_run_in_pieces(monkeypatch):
    monkeypatch.setattr(tir.interpreter, "GRID", 64)
    test_matmul()
    test_selects_evaluate_the_chosen_side_only()


def test_flattened_functions_compute_the_same():
    a = te.placeholder((6, 5), "int32", "a")
    k = te.reduce_axis((0, 5), "k")
    top = te.compute((6,), lambda y: te.max(a[y, k], axis=k), "top")
    out = te.compute((6, 5), lambda y, x: a[y, x] - top[y], "out")
    func = func_of(a, out)
    flat = tir.flatten_blocks(func)
    assert not list(tir.blocks(flat.body))
    x = RNG.integers(-99, 99, (6, 5)).astype("int32")
    for f in (func, tir.verify(flat)):
        np.testing.assert_array_equal(evaluate(f, x)[0], x - x.max(axis=1, keepdims=True))
