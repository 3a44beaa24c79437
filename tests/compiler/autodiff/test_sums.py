"""Adjoints of products and reductions, against differences of their results."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from tests.support.gradients import check_node
from vdla.compiler.graph import ops

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("a", "b"), [((3, 4), (4, 2)), ((2, 3, 4), (4, 2)), ((2, 1, 3, 4), (5, 4, 2))]
)
def test_products_of_matrices(a, b):
    check_node(ops.MatMul, {"a": numbers(*a), "b": numbers(*b)})


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
        ("ij->i", [(2, 3)]),  # an axis that nobody else has
        ("i,j->ij", [(2,), (3,)]),
    ],
)
def test_products_by_letters(equation, shapes):
    parts = [numbers(*shape) for shape in shapes]
    check_node(ops.Einsum, {"parts": parts}, equation=equation)


@pytest.mark.parametrize(("a", "b"), [((3, 4), (4, 2)), ((2, 3, 4), (4, 2))])
def test_products_of_integers_have_the_gradients_of_their_factors(a, b):
    """Of what the factors are rounded to, with gradients of 16 bits."""
    a, b = numbers(*a), numbers(*b)
    exact = [numbers(*a.shape[:-1], b.shape[-1])]

    def by(product):
        def loss(a, b):
            return np.sum(product(a, b) * exact[0])

        return vdla.grad(loss, argnums=(0, 1))(a, b)

    rounded = by(lambda a, b: vdla.dynamic_matmul(a, b))
    steps = [np.rint(x / (np.abs(x).max() / 127)) * (np.abs(x).max() / 127) for x in (a, b)]
    first = exact[0] @ steps[1].T
    second = np.swapaxes(steps[0], -1, -2) @ exact[0]
    second = second.sum(axis=0) if second.ndim > 2 else second
    for got, want in zip(rounded, (first, second), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-3)
    for got, want in zip(rounded, by(np.matmul), strict=True):
        assert np.abs(got - want).max() < 0.1


def test_gradients_of_gradients_of_products_of_integers():
    a, b = numbers(3, 4), numbers(4, 2)

    def slope(a, b):
        d = vdla.grad(lambda a: np.sum(vdla.dynamic_matmul(a, b, 16) ** 2))(a)
        return np.sum(d * d)

    def exact(a, b):
        return np.sum(vdla.grad(lambda a: np.sum((a @ b) ** 2))(a) ** 2)

    got, want = vdla.grad(slope)(a, b), vdla.grad(exact)(a, b)
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(3, 8), (2, 2, 2, 2)])
def test_dense_layers(shape, bias):
    operands = {"data": numbers(*shape), "weight": numbers(5, 8)}
    check_node(ops.Dense, operands | ({"bias": numbers(5)} if bias else {}))


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("function", ["sum", "mean", "max", "min", "prod"])
def test_reductions(function, axes, keepdims):
    data = RNG.permutation(np.arange(1, 25)).reshape(2, 3, 4).astype(np.float32) / 8
    check_node(ops.Reduce, {"data": data}, function=function, axes=axes, keepdims=keepdims)


def test_products_of_zeros():
    data = np.array([[2, 0, 3], [0, 1, 0]], np.float32)
    check_node(ops.Reduce, {"data": data}, function="prod", axes=(1,))


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
def test_running_sums(reverse, exclusive):
    fields = {"function": "sum", "axis": 1, "reverse": reverse, "exclusive": exclusive}
    check_node(ops.Cumulate, {"data": numbers(2, 4, 3)}, **fields)


@pytest.mark.parametrize("axis", [0, 1])
def test_shares(axis):
    check_node(ops.Softmax, {"data": numbers(3, 4)}, axis=axis)


def test_normalizations_by_channel():
    operands = {"data": numbers(2, 3, 2, 2), "factor": numbers(3), "offset": numbers(3)}
    check_node(ops.BatchNorm, operands)


def test_resizing():
    rows = np.array([[4, 0], [3, 1], [1, 3], [0, 4]], np.float32)
    operands = {"data": numbers(1, 2, 2, 2), "rows": rows, "columns": rows[:3]}
    check_node(ops.Interpolate, operands, constants=("rows", "columns"))
