"""Operators whose windows slide over signals, images and volumes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_operators import agrees, one, real
from quantized_models import RNG, W, same_results, single


@pytest.mark.parametrize(("shape", "kernel", "attributes"), [
    ((2, 4, 9), (6, 2, 3), {"group": 2, "strides": [2], "pads": [1, 2]}),
    ((1, 3, 5, 6, 7), (4, 3, 2, 3, 2), {"dilations": [2, 1, 1], "pads": [1, 0, 1, 0, 1, 0]}),
    ((1, 3, 5, 6, 7), (4, 3, 3, 3, 3), {"strides": [2, 1, 2], "auto_pad": "SAME_UPPER"}),
])  # fmt: skip
def test_convolutions_of_signals_and_volumes(shape, kernel, attributes):
    weights = {"w": real(*kernel), "b": real(kernel[0])}
    agrees(one("Conv", "x", "w", "b", **attributes), {"x": real(*shape)}, weights)


@pytest.mark.parametrize(("shape", "kernel", "attributes"), [
    ((1, 4, 5), (4, 3, 3), {"strides": [2], "output_padding": [1]}),
    ((2, 4, 5, 4), (4, 3, 3, 2), {"strides": [2, 3], "pads": [1, 0, 2, 1], "group": 2}),
    ((1, 2, 4, 4), (2, 3, 3, 3), {"dilations": [2, 1], "strides": [2, 2]}),
    ((1, 2, 4, 4), (2, 3, 3, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}),
    ((1, 2, 3, 3, 4), (2, 2, 2, 3, 2), {"strides": [2, 1, 2]}),
])  # fmt: skip
def test_transposed_convolutions(shape, kernel, attributes):
    x, weights = {"x": real(*shape)}, {"w": real(*kernel)}
    agrees(one("ConvTranspose", "x", "w", **attributes), x, weights)


@pytest.mark.parametrize("shape", [(2, 3, 11), (1, 3, 9, 8), (1, 2, 7, 6, 8)])
@pytest.mark.parametrize(("op", "attributes"), [
    ("MaxPool", {}), ("MaxPool", {"ceil_mode": 1}), ("AveragePool", {"count_include_pad": 1}),
    ("AveragePool", {"ceil_mode": 1}), ("AveragePool", {"count_include_pad": 1, "ceil_mode": 1}),
    ("LpPool", {"p": 3}),
])  # fmt: skip
def test_pools(op, attributes, shape):
    rank = len(shape) - 2
    window = {"kernel_shape": [3, 2, 3][:rank], "strides": [2, 1, 2][:rank], "pads": [1] * 2 * rank}
    agrees(one(op, "x", **window, **attributes), {"x": real(*shape)}, opset=19)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (1, 3, 4, 5), (1, 2, 3, 4, 2)])
def test_pools_over_all(op, shape):
    agrees(one(op, "x"), {"x": real(*shape)})


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({}, (1, 6, 4, 6)),
        ({"strides": [2, 3]}, (1, 6, 2, 2)),
        ({"pads": [1, 0, 2, 1]}, (1, 6, 7, 7)),
        ({"dilations": [2, 1]}, (1, 6, 2, 6)),
        ({"auto_pad": "VALID"}, (1, 6, 4, 6)),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, (1, 6, 3, 4)),
        ({"auto_pad": "SAME_LOWER", "strides": [2, 2]}, (1, 6, 3, 4)),
    ],
)
def test_conv_windows(attributes, shape):
    graph = same_results(single("Conv", shape, extra=["w"], constants={"w": W}, **attributes))
    assert graph.tensors["y"].shape == shape


def test_conv_groups_and_bias():
    w = RNG.standard_normal((6, 2, 3, 3)).astype(np.float32)
    b = RNG.standard_normal(6).astype(np.float32)
    proto = single("Conv", (1, 6, 4, 5), extra=["w", "b"], constants={"w": w, "b": b}, group=2)
    assert same_results(proto).node("it").groups == 2


@pytest.mark.parametrize(
    ("op", "attributes", "shape"),
    [
        (
            "MaxPool",
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
            (1, 4, 3, 4),
        ),
        ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "ceil_mode": 1}, (1, 4, 3, 4)),
        (  # the last place rounding up would take sees only padding
            "MaxPool",
            {"kernel_shape": [2, 2], "strides": [3, 3], "pads": [0, 0, 1, 1], "ceil_mode": 1},
            (1, 4, 2, 3),
        ),
        ("MaxPool", {"kernel_shape": [2, 2], "dilations": [2, 3]}, (1, 4, 4, 4)),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, (1, 4, 6, 7)),
        (
            "AveragePool",
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            (1, 4, 6, 7),
        ),
        ("AveragePool", {"kernel_shape": [4, 4], "strides": [3, 3], "ceil_mode": 1}, (1, 4, 2, 2)),
        ("AveragePool", {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"}, (1, 4, 6, 7)),
        ("GlobalAveragePool", {}, (1, 4, 1, 1)),
    ],
)
def test_pools_of_quantized_images(op, attributes, shape):
    assert same_results(single(op, shape, **attributes)).tensors["y"].shape == shape
