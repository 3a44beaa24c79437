"""Adjoints of sums of products, of reductions, and of what is built from both."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from vdla.compiler.autodiff.rules import Gradients, gathered, rule
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.dynamic_matmul import DynamicMatMul
from vdla.compiler.tracing.arrays import Array
from vdla.compiler.tracing.elements import dynamic_matmul, where
from vdla.compiler.tracing.nodes import add, array
from vdla.compiler.tracing.shapes import (
    SUM,
    broadcast_to,
    expand_dims,
    full_like,
    swapaxes,
    transpose,
)


@rule(ops.MatMul)
def _matmul(node: ops.MatMul, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    a, b = x
    first, second = np.matmul(d, swapaxes(b, -1, -2)), np.matmul(swapaxes(a, -1, -2), d)
    return [gathered(first, a.shape), gathered(second, b.shape)]


@rule(DynamicMatMul)
def _dynamic(node: DynamicMatMul, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """Products of the factors as they were rounded, and of the gradient of so many bits."""
    (a, b), bits = x, node.gradient_bits
    first = dynamic_matmul(d, swapaxes(b, -1, -2), (bits, node.bits[1]), bits)
    second = dynamic_matmul(swapaxes(a, -1, -2), d, (node.bits[0], bits), bits)
    return [gathered(first, a.shape), gathered(second, b.shape)]


@rule(ops.Einsum)
def _einsum(node: ops.Einsum, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """A product of all others and of ``d``, whose axes that none of them has are repeated."""
    terms, right = node.terms
    result: list[Array | None] = []
    for number, (term, own) in enumerate(zip(terms, x, strict=True)):
        others = [
            (t, each) for n, (t, each) in enumerate(zip(terms, x, strict=True)) if n != number
        ]
        parts = [(right, d), *others]
        known = {letter for t, _ in parts for letter in t}
        if lost := [letter for letter in term if letter not in known]:
            sizes = tuple(own.shape[term.index(letter)] for letter in lost)
            parts.append(("".join(lost), array(np.ones(sizes, d.dtype))))
        equation = ",".join(t for t, _ in parts) + "->" + term
        operands = [each for _, each in parts]
        result.append(product(equation, operands))
    return result


def product(equation: str, operands: Sequence[Array]) -> Array:
    """A product of arrays by the letters of their axes."""
    return add("product", ops.Einsum, operands, str(operands[0].dtype), equation=equation)


@rule(ops.Dense)
def _dense(node: ops.Dense, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    data, weight, *bias = x
    rows = data.reshape(data.shape[0], -1)
    first = np.matmul(d, weight).reshape(*data.shape)
    return [first, np.matmul(transpose(d), rows), *[SUM(d, axis=0)] * len(bias)]


# Many elements as one ----------------------------------------------------------------------------


def _kept(node: ops.Reduce, x: Array, y: Array) -> Array:
    """A result with its axes of size 1."""
    return y.reshape(*(1 if n in node.axes else size for n, size in enumerate(x.shape)))


@rule(ops.Reduce)
def _reduce(node: ops.Reduce, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    (data,) = x
    whole, result = _kept(node, data, d), _kept(node, data, y)
    if node.function in ("sum", "mean"):
        count = prod(data.shape[n] for n in node.axes) if node.function == "mean" else 1
        return [broadcast_to(whole if count == 1 else whole / count, data.shape)]
    if node.function == "prod":
        return [whole * _others(node, data)]
    equal = (data == result).astype(d.dtype)  # of equal ones each has its share
    return [whole * equal / SUM(equal, axis=node.axes, keepdims=True)]


def _others(node: ops.Reduce, data: Array) -> Array:
    """The product of all elements but each one, zeros among them or not: of those before it, times
    those behind it."""
    rest = [n for n in range(data.ndim) if n not in node.axes]
    order = [*rest, *node.axes]
    flat = transpose(data, order).reshape(*(data.shape[n] for n in rest), -1)
    fields = {"function": "prod", "axis": len(rest), "exclusive": True}
    before, behind = (
        add("product", ops.Cumulate, [flat], str(data.dtype), reverse=reverse, **fields)
        for reverse in (False, True)
    )
    whole = (before * behind).reshape(*(data.shape[n] for n in order))
    return transpose(whole, np.argsort(order).tolist())


@rule(ops.Cumulate)
def _cumulate(node: ops.Cumulate, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    fields = {"function": node.function, "exclusive": node.exclusive}
    if node.function == "sum":
        fields |= {"axis": node.axis, "reverse": not node.reverse}
        return [add("sum", ops.Cumulate, [d], str(d.dtype), **fields)]
    order = [*(n for n in range(d.ndim) if n != node.axis), node.axis]
    data, above = transpose(x[0], order), transpose(d, order)
    parts = _without_each(data, fields | {"axis": data.ndim, "reverse": node.reverse})
    return [transpose(SUM(parts * expand_dims(above, -2), axis=-1), np.argsort(order).tolist())]


def _without_each(data: Array, fields: dict[str, object]) -> Array:
    """[…, k, i]: the factor of element k along the last axis in the running product at i, zeros
    among them or not; 0 where it isn't in it."""
    size = data.shape[-1]
    rest = broadcast_to(expand_dims(data, -2), (*data.shape, size))
    own = array(np.broadcast_to(np.eye(size, dtype=bool), rest.shape))
    ones = full_like(rest, 1)
    running = add("product", ops.Cumulate, [where(own, ones, rest)], str(data.dtype), **fields)
    holds = np.tril if fields["reverse"] else np.triu
    shift = (-1 if fields["reverse"] else 1) * int(bool(fields["exclusive"]))
    result: Array = running * array(holds(np.ones((size, size), data.dtype), shift))
    return result


@rule(ops.Softmax)
def _softmax(node: ops.Softmax, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """The gradient by the shares alone, without an exponential or a quotient."""
    scaled = d * y
    return [scaled - y * SUM(scaled, axis=node.axis, keepdims=True)]


@rule(ops.BatchNorm)
def _batch_norm(node: ops.BatchNorm, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    data, factor, _ = x
    axes = tuple(n for n in range(data.ndim) if n != 1)
    column = factor.reshape(-1, *[1] * (data.ndim - 2))
    return [d * column, SUM(d * data, axis=axes), SUM(d, axis=axes)]


@rule(ops.Interpolate)
def _interpolate(node: ops.Interpolate, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    _, rows, columns = x
    if rows.value is None or columns.value is None:
        return None
    down, across = (
        np.asarray(each.value, np.float64) / np.asarray(each.value).sum(axis=1)[0]
        for each in (rows, columns)
    )
    left, right = (array(each.astype(d.dtype)) for each in (down.T, across))
    return [
        np.matmul(np.matmul(broadcast_to(left, (*d.shape[:2], *left.shape)), d), right),
        None,
        None,
    ]
