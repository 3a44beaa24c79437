"""Between real numbers and integers, and between the two ways to store a byte."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import IMAGE, check_types

from vdla.compiler.graph import ops

F, I8, U8 = "float32", "int8", "uint8"


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("dtype", [I8, U8])
def test_quantize_and_dequantize(axis, dtype):
    scale, zero = ((0.037,), (9,)) if axis is None else ((0.1, 0.2, 0.3, 0.4, 0.5), (1, 2, 3, 4, 5))
    common = {"name": "n", "data": "x", "output": "y", "scale": scale, "zero_point": zero}
    check_types(ops.Quantize(**common, axis=axis), {"x": (F, *IMAGE), "y": (dtype, *IMAGE)})
    check_types(ops.Dequantize(**common, axis=axis), {"x": (dtype, *IMAGE), "y": (F, *IMAGE)})


def test_quantize_extremes():
    node = ops.Quantize(name="n", data="x", output="y", scale=(1.0,), zero_point=(-3,))
    x = np.array([0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf], np.float32)
    check_types(node, {"y": (I8, 8)}, {"x": x})


def test_dequantize_int32():
    node = ops.Dequantize(name="n", data="x", output="y", scale=(1e-3,), zero_point=(-7,))
    x = np.array([2**31 - 1, -(2**31), 0, 12345], np.int32)
    check_types(node, {"y": (F, 4)}, {"x": x})


@pytest.mark.parametrize("pair", [(I8, U8), (U8, I8)])
def test_flip_sign(pair):
    check_types(
        ops.FlipSign(name="n", data="x", output="y"), {"x": (pair[0], 3, 9), "y": (pair[1], 3, 9)}
    )
