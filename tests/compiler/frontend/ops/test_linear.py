"""Sums with weights known now: resizing, Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_operators import F, agrees, one, real


@pytest.mark.parametrize(("attributes", "scales"), [
    ({"mode": "linear"}, [1, 1, 2, 1.5]),
    ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, [1, 1, 2, 3]),
    ({"mode": "cubic", "coordinate_transformation_mode": "asymmetric"}, [1, 1, 2, 2]),
    ({"mode": "nearest", "nearest_mode": "floor"}, [1, 1, 0.5, 3]),
    ({"mode": "linear", "antialias": 1}, [1, 1, 0.5, 0.5]),
])  # fmt: skip
def test_resizing(attributes, scales):
    constants = {"s": np.array(scales, F)}
    agrees(one("Resize", "x", "", "s", **attributes), {"x": real(1, 2, 6, 8)}, constants)


@pytest.mark.parametrize("shape", [(2, 40), (2, 40, 1)])
def test_short_transforms_of_signals(shape):
    constants = {"step": np.array(5), "w": real(16)}
    agrees(one("STFT", "x", "step", "w"), {"x": real(*shape)}, constants, rtol=1e-4)


@pytest.mark.parametrize(("last", "attributes"), [
    (1, {}), (2, {}), (1, {"onesided": 1}), (2, {"inverse": 1}),
])  # fmt: skip
def test_transforms(last, attributes):
    x = {"x": real(2, 8, last)}
    agrees(one("DFT", "x", axis=1, **attributes), x, opset=17, rtol=1e-4)
