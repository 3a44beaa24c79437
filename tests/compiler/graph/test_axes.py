"""Axes that go together, held against what operators compute: a permuted index gives the same."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.graph import ops
from vdla.compiler.graph.axes import RESULT
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.ops.multiply import QMultiply
from vdla.compiler.graph.types import Requant, TensorType

NAMES = {"name": "n", "output": "y"}
PAIR = {**NAMES, "a": "a", "b": "b", "zeros": (3, -2)}
TWO = Requant((0.5, 0.7), 1)
DENSE = {"data": "x", "weight": "w", "bias": "b", "zeros": (3,)}
NODES = [
    (ops.QAdd(**PAIR, requant=TWO), [(2, 3, 4), (2, 3, 4)]),
    (QMinimum(**PAIR, requant=TWO), [(2, 3), (2, 3)]),
    (QMultiply(**PAIR, requant=Requant((0.01,), 1)), [(2, 3, 4, 2), (2, 3, 1, 1)]),
    (ops.QClip(**NAMES, data="x", zeros=(3,), requant=Requant((0.5,), 1)), [(5, 4)]),
    (ops.QTable(**NAMES, data="x", table="t"), [(5, 4), (256,)]),
    (ops.Dequantize(**NAMES, data="x", scale=(0.1,), zero_point=(3,)), [(2, 3, 4)]),
    (ops.QTranspose(**NAMES, data="x", perm=(2, 0, 1)), [(2, 3, 4)]),
    (ops.MatMul(**NAMES, a="a", b="b"), [(2, 3, 4), (2, 4, 5)]),
    (ops.QDense(**NAMES, **DENSE, requant=Requant((0.01,) * 3, 1)), [(2, 5), (3, 5), (3,)]),
]  # fmt: skip


@pytest.mark.parametrize(("node", "shapes"), NODES, ids=lambda each: getattr(each, "op", ""))
def test_indices_in_another_order_along_axes_that_go_together(node, shapes):
    rng = np.random.default_rng(0)
    kinds = [*[np.int8] * len(shapes)]
    if isinstance(node, ops.QDense):
        kinds[2] = np.int32
    args = [rng.integers(-128, 128, s).astype(k) for s, k in zip(shapes, kinds, strict=True)]
    result = node.result_shape(shapes)
    kind = TensorType(result, "float32" if isinstance(node, ops.Dequantize) else "int8")
    before = node.evaluate(args, kind)
    sets = node.aligned_axes(shapes, result)
    assert sets
    for axes in sets:
        sizes = {(result if k == RESULT else shapes[k])[n] for k, n in axes}
        (size,) = sizes
        order = rng.permutation(size)
        moved, wanted = list(args), before
        for k, n in axes:
            if k == RESULT:
                wanted = wanted.take(order, n)
            else:
                moved[k] = moved[k].take(order, n)
        np.testing.assert_array_equal(node.evaluate(moved, kind), wanted)


def test_an_operator_needs_other_axes_as_they_are():
    scaled = ops.Dequantize(**NAMES, data="x", scale=(0.1, 0.2), zero_point=(3, 4), axis=0)
    assert scaled.aligned_axes([(2, 3)], (2, 3)) == ()
    assert ops.QReshape(**NAMES, data="x").aligned_axes([(2, 3)], (6,)) == ()
    floats = ops.Dense(**NAMES, data="x", weight="w")
    assert floats.aligned_axes([(2, 5), (3, 5)], (2, 3)) == ()
    stacks = ops.MatMul(**NAMES, a="a", b="b")
    assert stacks.aligned_axes([(3, 4), (2, 4, 5)], (2, 3, 5)) == ()
