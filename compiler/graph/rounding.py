"""Where float32 arithmetic may round to either of two neighbouring integers.

The reference (onnxruntime) computes pools, additions and changes of scale in float32: it
dequantizes, adds up, divides by the result's scale and rounds. Each of these steps may be off by
half a unit in the last place, so a result that lies as close to the middle between two integers as
these errors add up to is undecided: both neighbours are right. Averages of 2x2 at one scale lie
exactly there a quarter of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vdla.compiler.graph import ir
from vdla.compiler.graph.ir import Array, Node
from vdla.compiler.graph.reference import window_counts, window_views

UNIT = 2.0**-24  # the relative error of one float32 operation

# What a rule gives: the exact result before rounding, in steps of the output; the sum of its terms'
# sizes; and the number of float32 operations that the reference needs for it.
Exact = tuple[Array, Array, Any]


def _pool(node: ir.QAvgPool, operands: Sequence[Array]) -> Exact:
    centered = operands[0].astype(np.float64) - node.in_zp
    counts = np.maximum(window_counts(node, operands[0].shape), 1)
    views = window_views(centered, node, node.kernel, 0)
    scale = node.in_scale / (node.out_scale * counts)
    total, size = views.sum(axis=(2, 3)), np.abs(views).sum(axis=(2, 3))
    return total * scale, size * scale, counts + 3


def _add(node: ir.QAdd, operands: Sequence[Array]) -> Exact:
    a = (operands[0].astype(np.float64) - node.a_zp) * node.scales[0]
    b = (operands[1].astype(np.float64) - node.b_zp) * node.scales[1]
    return a + b, np.abs(a) + np.abs(b), 5


def _clip(node: ir.QClip, operands: Sequence[Array]) -> Exact:
    value = (operands[0].astype(np.float64) - node.in_zp) * node.scale
    return value, np.abs(value), 3


RULES: dict[type[Node], Callable[[Any, Sequence[Array]], Exact]] = {
    ir.QAvgPool: _pool,
    ir.QAdd: _add,
    ir.QClip: _clip,
}


def undecided(node: Node, operands: Sequence[Array]) -> Array | None:
    """Which elements of a node's result float32 may round either way; None for other nodes."""
    rule = RULES.get(type(node))
    if rule is None:
        return None
    value, size, operations = rule(node, operands)
    middle = np.floor(value) + 0.5
    return np.asarray(np.abs(value - middle) <= size * operations * UNIT)
