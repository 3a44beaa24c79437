"""Softmax over pixels in integers: near the one of floats."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.types import Requant

F = np.float32


@pytest.mark.parametrize("scale", [0.003, 0.06, 0.4])
@pytest.mark.parametrize("pixels", [1, 7, 197])
def test_softmax_of_integers(pixels, scale):
    """At most one step from floats, in one of a thousand; where shares are large, of a hundred."""
    node = QSoftmax(**NAMES, data="x", step=scale, zeros=(0,), requant=Requant((1 / 256,), -128))
    x = numbers("int8", (2, 50, 1, pixels), -128, 128)
    result = check(node, x).astype(int)
    powers = np.exp((x - x.max(axis=-1, keepdims=True).astype(F)) * F(scale))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    steps = result - np.clip(np.rint(shares * 256) - 128, -128, 127)
    assert np.abs(steps).max() <= 1
    assert (steps != 0).mean() <= (0.001 if pixels > 100 else 0.01)
