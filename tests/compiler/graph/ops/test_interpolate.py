"""Images of another size, each pixel a weighted mean of its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import IMAGE, NAMES, check_types, narrowed, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.interpolate import weight_of
from vdla.compiler.graph.types import Requant, TensorType

N, C, H, W = IMAGE
FIELDS = {**NAMES, "data": "x", "rows": "r", "columns": "c"}
REQUANT = Requant((0.0625,), -2, -120, 110)


def halves(size):
    """Weights of twice the size by half pixels: quarters."""
    weights = np.zeros((2 * size, size), np.int32)
    for place in range(2 * size):
        near, far = place // 2, place // 2 + (1 if place % 2 else -1)
        weights[place, near] += 3
        weights[place, min(max(far, 0), size - 1)] += 1
    return weights


WEIGHTS = {"r": halves(H), "c": halves(W)}


def test_means():
    out = N, C, 2 * H, 2 * W
    types = {"x": ("float32", *IMAGE), "y": ("float32", *out)}
    node = ops.Interpolate(**FIELDS)
    check_types(node, types, WEIGHTS, exact=False)
    x = numbers("float32", IMAGE)
    found = node.evaluate([x, *WEIGHTS.values()], TensorType(out, "float32"))
    wanted = np.einsum("yi,xj,ncij->ncyx", WEIGHTS["r"] / 4, WEIGHTS["c"] / 4, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_sums_of_integers():
    out = N, C, 2 * H, 2 * W
    node = ops.QInterpolate(**FIELDS, zeros=(7,), requant=REQUANT)
    check_types(node, {"x": ("int8", *IMAGE), "y": ("int8", *out)}, WEIGHTS)
    x = numbers("int8", IMAGE, -128, 128)
    wide = np.einsum("yi,xj,ncij->ncyx", *WEIGHTS.values(), x.astype(int) - 7)
    found = node.evaluate([x, *WEIGHTS.values()], TensorType(out, "int8"))
    np.testing.assert_array_equal(found, narrowed(wide, 0.0625, REQUANT))


def test_the_sum_of_all_weights():
    assert weight_of(WEIGHTS["r"], WEIGHTS["c"]) == 16


def test_weights_of_another_image():
    node = ops.QInterpolate(**FIELDS, zeros=(0,), requant=REQUANT)
    expected = r"n \(QInterpolate\): expected an image of 7 x 6 pixels, found \[2, 5, 7, 5\]"
    with pytest.raises(GraphError, match=expected):
        node.result_shape([(2, 5, 7, 5), (14, 7), (12, 6)])
