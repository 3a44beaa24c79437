"""Index arithmetic: simplification and bounds agree with evaluation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.tir import Const, Var, affine, bounds, show, simplify
from vdla.compiler.tir.arith import difference, same
from vdla.compiler.tir.interp import Interpreter
from vdla.compiler.tir.ir import Binary, Select, binary, cast, const
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
    ],
)
def test_simplified_forms(expr, text):
    assert show(simplify(expr, RANGES)) == text


def test_affine():
    assert affine(X * 3 + Y - 2) == (-2, {X: 3, Y: 1})
    assert affine(X // 2) is None
    assert affine(X * Y) is None


def test_differences():
    assert difference(X * 2 + 5, X + X) == 5
    assert difference(X, Y) is None
    assert same(X + Y, Y + X)
    assert not same(X, Y)


def test_integer_constants_wrap():
    wrapped = simplify(Binary("add", const(127, "int8"), const(1, "int8")))
    assert wrapped == Const(-128, "int8")
