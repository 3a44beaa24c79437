"""Dense layers and integer matrix products as dot products of eight.

Zero points leave the sums: Σ (a - z) * w = Σ a * w - z * Σ w, where Σ w is known. Rows whose length
is no multiple of eight are filled up with zeros.
"""

from dataclasses import dataclass

import numpy as np

from vdla import te
from vdla.compiler.graph.ops.dense import QDense
from vdla.compiler.graph.ops.matmul_integer import MatMulInteger
from vdla.compiler.targets.template import ScheduledTemplate
from vdla_dot8.instructions import LANES, dot8


@dataclass(frozen=True)
class Products(ScheduledTemplate):
    """Base of both templates: ``sums`` are dot products, ``result`` is made of them."""

    sums: te.Tensor
    result: te.Tensor

    def schedule(self, s, result):
        stage = s[self.sums]
        _, inner = stage.split(stage.reduce_axis[0], factor=LANES)
        stage.tensorize(inner, dot8())


def dot_products(recipe, rows, weight):
    """Σ_k rows[n, k] * weight[o, k] of int8, for [N, K] rows and a constant [O, K] weight."""
    (n, length), (outputs, _) = rows.shape, weight.shape
    filled = -(-length // LANES) * LANES
    table = recipe.constant("weight", np.pad(weight, ((0, 0), (0, filled - length))))
    if filled > length:
        zero, short = te.const(0, "int8"), rows
        rows = te.compute(
            (n, filled), lambda i, k: te.if_then_else(k < length, short[i, k], zero), "filled"
        )
    k = te.reduce_axis((0, filled), "k")
    return te.compute(
        (n, outputs),
        lambda i, o: te.sum(rows[i, k].astype("int32") * table[o, k].astype("int32"), axis=k),
        "sums",
    )


class Dense(Products):
    """A dense layer of int8, requantized."""

    NODES = (QDense,)

    @classmethod
    def of(cls, node, recipe, machine):
        weight, bias = recipe.value(node.weight), recipe.value(node.bias)
        rows = recipe.read(node.data, recipe.shape(node.data)[:2])
        sums = dot_products(recipe, rows, weight)
        start = recipe.constant("start", bias - node.zeros[0] * weight.sum(1, dtype=np.int32))
        narrow = node.narrowing(recipe)

        def value(n, o):
            return narrow(sums[n, o] + start[o], o)

        return cls(sums, te.compute(recipe.out_shape, value, "out"))


class MatMul(Products):
    """A product of a matrix of int8 and a constant one, whose zero points are constants."""

    NODES = (MatMulInteger,)

    @classmethod
    def refusal(cls, node, graph, machine):
        kinds = {graph.tensors[name].dtype for name in (node.a, node.b)}
        if kinds != {"int8"}:
            return f"dot8 multiplies int8, not {' and '.join(sorted(kinds))}"
        if len(graph.tensors[node.a].shape) != 2:
            return "dot8 takes one matrix at a time"
        if graph.constants[node.b_zero].any():
            return "dot8 takes weights without zero points"
        return None if node.a_zero in graph.constants else "a zero point is computed"

    @classmethod
    def of(cls, node, recipe, machine):
        weight, zero = recipe.value(node.b).T, recipe.value(node.a_zero)
        sums = dot_products(recipe, recipe.read(node.a), weight)
        start = recipe.constant("start", -int(zero[0]) * weight.sum(1, dtype=np.int32))
        return cls(sums, te.compute(recipe.out_shape, lambda n, o: sums[n, o] + start[o], "out"))
