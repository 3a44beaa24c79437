"""What convolutions and dense layers share: channels' biases and scales, and their sums."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.products import centered
from vdla.compiler.graph.types import Requant, TensorType

OPERANDS = {"data": "x", "weight": "w", "bias": "b"}
SCALES = (0.5, 0.25, 0.125)


def dense(scales=SCALES):
    return ops.QDense(**NAMES, **OPERANDS, zeros=(-7,), requant=Requant(scales, 2))


def test_sums_of_products_before_rounding():
    """Those that are rounded: by the scale of each channel."""
    x, w = numbers("int8", (4, 6), -128, 128), numbers("int8", (3, 6), -128, 128)
    b = numbers("int32", (3,), -900, 900)
    sums = np.array([
        [int(bias) + sum((int(p) + 7) * int(q) for p, q in zip(row, weights, strict=True))
         for weights, bias in zip(w, b, strict=True)] for row in x
    ])  # fmt: skip
    node = dense()
    np.testing.assert_array_equal(node.accumulated([x, w, b]), sums)
    value, size, _ = node.before_rounding([x, w, b])
    np.testing.assert_array_equal(value, sums * np.array(SCALES))
    np.testing.assert_array_equal(size, np.abs(value))
    found = node.evaluate([x, w, b], TensorType((4, 3), "int8"))
    np.testing.assert_array_equal(found, np.clip(np.rint(value) + 2, -128, 127))


def test_a_factor_and_an_offset_go_into_weights_and_bias():
    rng = np.random.default_rng(0)
    known = {"w": rng.normal(size=(3, 4, 2, 2)), "b": rng.normal(size=3)}
    factor, offset = rng.normal(size=(2, 3))
    for bias in ("b", None):
        node = ops.Conv2d(**NAMES, data="x", weight="w", bias=bias)
        weight, moved = node.scaled(factor, offset, known)
        np.testing.assert_array_equal(weight, known["w"] * factor[:, None, None, None])
        own = known["b"] if bias else 0
        np.testing.assert_array_equal(moved, own * factor + offset)


def test_work_is_two_operations_for_each_product():
    conv = ops.Conv2d(**NAMES, data="x", weight="w")
    assert conv.work([(2, 4, 8, 8), (6, 4, 3, 3)], (2, 6, 6, 6)) == 2 * (2 * 6 * 36) * 36


@pytest.mark.parametrize(
    ("node", "bias", "text"),
    [
        (dense(), 4, r"expected a bias of shape \[3\], found \[4\]"),
        (dense(SCALES[:2]), 3, "expected 3 scales, found 2"),
    ],
)
def test_one_of_each_for_a_channel(node, bias, text):
    with pytest.raises(GraphError, match=rf"n \(QDense\): {text}"):
        node.result_shape([(4, 6), (3, 6), (bias,)])


def test_differences_from_a_zero_point_are_exact():
    x = np.array([-128, 0, 127], np.int8)
    assert centered(x, 127).tolist() == [-255.0, -127.0, 0.0]
