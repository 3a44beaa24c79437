"""Index arithmetic: simplification and bounds agree with evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.tir import Buffer, Const, Load, Var, affine, bounds, show, simplify
from vdla.compiler.tir.arith import difference, same
from vdla.compiler.tir.interp import Interpreter
from vdla.compiler.tir.ir import Binary, Cast, Select, binary, cast, const
from vdla.compiler.tir.region import interval

X, Y, Z = (Var(n) for n in "xyz")
RANGES = {X: (0, 6), Y: (0, 3), Z: (-4, 9)}


def expressions():
    leaf = st.sampled_from([X, Y, Z]) | st.integers(-9, 9).map(const)

    def grow(inner):
        plain = st.builds(
            binary, st.sampled_from(["add", "sub", "mul", "min", "max"]), inner, inner
        )
        divided = st.builds(
            binary, st.sampled_from(["floordiv", "floormod"]), inner, st.integers(1, 7).map(const)
        )
        chosen = st.builds(lambda a, b, c: Select(a < b, a, c), inner, inner, inner)
        return plain | divided | chosen

    return st.recursive(leaf, grow, max_leaves=8)


def conditions():
    ops = st.sampled_from(["lt", "le", "gt", "ge", "eq", "ne"])
    leaf = st.builds(binary, ops, expressions(), expressions())
    return st.recursive(
        leaf,
        lambda c: st.builds(binary, st.sampled_from(["and", "or"]), c, c) | c.map(lambda e: ~e),
        max_leaves=3,
    )


def values(expr):
    grids = np.meshgrid(
        *(np.arange(lo, hi + 1, dtype=np.int64) for lo, hi in RANGES.values()), indexing="ij"
    )
    with np.errstate(all="ignore"):
        return np.broadcast_to(
            Interpreter().eval(expr, dict(zip(RANGES, grids, strict=True)), None), grids[0].shape
        )


@settings(max_examples=150, derandomize=True)
@given(expressions() | conditions())
def test_simplify_keeps_the_value(expr):
    np.testing.assert_array_equal(values(simplify(expr)), values(expr), err_msg=show(expr))
    np.testing.assert_array_equal(values(simplify(expr, RANGES)), values(expr), err_msg=show(expr))


@settings(max_examples=150, derandomize=True)
@given(expressions())
def test_bounds_contain_every_value(expr):
    found = bounds(expr, RANGES)
    assert found is not None
    assert found[0] <= values(expr).min()
    assert values(expr).max() <= found[1]


@settings(max_examples=150, derandomize=True)
@given(expressions())
def test_intervals_contain_every_value(expr):
    found = interval(expr, {X: 7, Y: 4}, {Z: RANGES[Z]})
    assert found is not None
    low, extent = found
    assert (values(low) <= values(expr)).all()
    assert (values(expr) < values(low) + extent).all()


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (X + 0, "x"),
        (X * 4 + 3 - X * 3, "x + 3"),
        ((X * 8 + Y) // 8, "x"),
        ((X * 8 + Y) % 8, "y"),
        ((X * 8 + Z) // 8, "x + z // 8"),
        (X // 4 * 4 + X % 4, "x"),
        ((X + 2) - (X - 1), "3"),
        (binary("min", X, 10), "x"),
        (binary("max", X, Z + 20), "z + 20"),
        (X < 7, "True"),
        (X >= 7, "False"),
        (~(X < 3), "x >= 3"),
        (Select(Y < 4, X, Z), "x"),
        (Y - X, "y - x"),
        (-X, "x * -1"),
        (cast(const(300), "int8"), "int8(44)"),
        (cast(const(3), "float32"), "3.0"),
        (Cast(const(0.1), "float32"), "0.1"),
        (const(1.5) < const(2.5), "True"),
        (const(1.5) >= const(2.5), "False"),
    ],
)
def test_simplified_forms(expr, text):
    assert show(simplify(expr, RANGES)) == text


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize(
    "op",
    ["add", "sub", "mul", "floordiv", "floormod", "min", "max", "shl", "shr", "bitand", "bitxor"],
)
def test_operations_on_constants_are_done(op, dtype):
    for a, b in ((100, 7), (13, 5), (3, 2), (9, 1)):
        expr = Binary(op, const(a, dtype), const(b, dtype))
        with np.errstate(over="ignore"):
            value = Interpreter().eval(expr, {}, None)
        assert simplify(expr) == Const(int(value), dtype)


@pytest.mark.parametrize(
    ("op", "b"), [("floordiv", 0), ("floormod", 0), ("shl", 64), ("shr", 64), ("shl", -1)]
)
def test_undefined_operations_on_constants_are_left(op, b):
    expr = Binary(op, const(5), const(b))
    assert simplify(expr) == expr


def test_a_shift_by_nothing():
    assert simplify(Binary("shl", const(5), const(0))) == const(5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_constants_are_compared_as_their_dtype_holds_them(dtype):
    for x, y in ((0.1, float(np.float32(0.1))), (2.0**24 + 1, 2.0**24), (1.5, 2.5)):
        for op in ("eq", "lt", "ge"):
            expr = Binary(op, const(x, dtype), const(y, dtype))
            assert simplify(expr) == const(bool(Interpreter().eval(expr, {}, None)))


def test_casts_that_round_are_left():
    for expr in (cast(const(0.1, "float64"), "float32"), cast(const(0.5), "int32")):
        assert simplify(expr) == expr


def test_bounds_of_a_remainder_within_one_period():
    assert bounds(Z % 8, {Z: (10, 14)}) == (2, 6)
    assert bounds(Z % 8, {Z: (6, 9)}) == (0, 7)


def test_bounds_of_a_condition_as_a_number():
    assert bounds(cast(X < Y, "int32") * 5 + 2, RANGES) == (2, 7)


def test_affine():
    assert affine(X * 3 + Y - 2) == (-2, {X: 3, Y: 1})
    assert affine(X // 2) is None
    assert affine(X * Y) is None


def test_differences():
    assert difference(X * 2 + 5, X + X) == 5
    assert difference(X, Y) is None
    assert same(X + Y, Y + X)
    assert not same(X, Y)
    assert not same(const(1), const(1, "int64"))


def test_equal_loads():
    a = Buffer("a", (9,), "int32")
    assert same(Load(a, (X + Y,)), Load(a, (X + 1 + Y - 1,)))
    assert not same(Load(a, (X,)), Load(a, (Y,)))


def test_integer_constants_wrap():
    wrapped = simplify(Binary("add", const(127, "int8"), const(1, "int8")))
    assert wrapped == Const(-128, "int8")
