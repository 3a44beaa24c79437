"""Normalization in integers: near the one of floats."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.normalize import QNormalize, Terms
from vdla.compiler.graph.types import Requant


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize(("channels", "spread", "mean"), [(8, 30, 5), (192, 8, 40), (768, 20, -9)])
def test_normalization_in_integers(channels, spread, mean, centered):
    """At most one step from floats, in two of a hundred."""
    rng, zero, epsilon, step = np.random.default_rng(channels), 3, 0.02, 0.03
    x = np.clip(rng.normal(mean, spread, (2, channels, 1, 50)), -128, 127).astype(np.int8)
    gamma, beta = rng.normal(1, 0.4, channels), rng.normal(0, 0.5, channels)
    terms = Terms.of(gamma / step, beta / step)
    numbers = {"shift": terms.shift, "zeros": (zero,), "requant": Requant((terms.scale,), -4)}
    node = QNormalize(
        **NAMES, data="x", factor="f", offset="o", centered=centered, epsilon=epsilon, **numbers
    )
    result = check(node, x, terms.factor, terms.offset)[:, :, 0].astype(int)
    data = x[:, :, 0].astype(float) - zero
    data -= data.mean(axis=1, keepdims=True) if centered else 0
    root = np.sqrt((data**2).mean(axis=1, keepdims=True) + epsilon)
    wanted = data / root * gamma[:, None] + beta[:, None]
    steps = result - np.clip(np.rint(wanted.swapaxes(1, 2) / step) - 4, -128, 127)
    assert np.abs(steps).max() <= 1
    assert (steps != 0).mean() <= 0.02


def test_equal_channels_have_nothing_above_their_mean():
    terms = Terms.of(np.full(16, 30.0), np.arange(16.0))
    names = {"data": "x", "factor": "f", "offset": "o", "centered": True, "epsilon": 0.0}
    node = QNormalize(
        **NAMES, **names, shift=terms.shift, zeros=(0,), requant=Requant((terms.scale,), 0)
    )
    result = check(node, np.full((1, 16, 1, 3), -77, np.int8), terms.factor, terms.offset)
    np.testing.assert_array_equal(result, np.tile(np.arange(16), (1, 3, 1, 1)))


def test_normalizations_that_have_no_integers():
    with pytest.raises(GraphError, match="expected finite factors and offsets of a normalization"):
        Terms.of(np.array([1.0, np.inf]), np.zeros(2))
    node = QNormalize(
        **NAMES, data="x", factor="f", offset="o", centered=True, epsilon=0.0, shift=0,
        zeros=(0,), requant=Requant((1.0,), 0),
    )  # fmt: skip
    with pytest.raises(GraphError, match=r"expected a factor and an offset of shape \[4\], found"):
        node.result_shape([(1, 4, 1, 3), (3,), (4,)])
    with pytest.raises(GraphError, match=r"expected an image \[N, C, 1, W\] of up to 16384 ch"):
        node.result_shape([(1, 4, 2, 3), (4,), (4,)])
