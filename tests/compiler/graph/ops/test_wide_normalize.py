"""Normalizations of 16 bits: near the ones of floats, whatever the channels are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes import NAMES, check

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.normalize import Terms
from vdla.compiler.graph.ops.wide import MOST
from vdla.compiler.graph.ops.wide_normalize import QWideNormalize, WideMoments
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.numbers import MANTISSA_BITS

EPSILON = 50.0  # squared steps


def bytes_of(whole):
    """Both bytes of images of 16 bits, low before high."""
    high = (whole + 128) >> 8
    both = np.stack([whole - (high << 8), high], axis=1)
    return both.reshape(2 * len(whole), *whole.shape[1:]).astype(np.int8)


def normalization(channels, wide, centered=True, seed=0, most=120):
    """A node, its constants, and the real factors and offsets, in steps of the result."""
    rng = np.random.default_rng(seed)
    gamma, beta = rng.normal(1, 0.4, channels), rng.normal(0, 0.5, channels)
    step = (channels**0.5 * np.abs(gamma).max() + np.abs(beta).max()) / (MOST if wide else most)
    gamma, beta, unit = gamma / step, beta / step, WideMoments(channels).unit
    terms = Terms.of(gamma, beta, unit, 1.0) if wide else Terms.of(gamma, beta, unit)
    requant = None if wide else Requant((terms.scale,), -4)
    node = QWideNormalize(
        **NAMES, data="x", factor="f", offset="o", centered=centered, epsilon=EPSILON,
        shift=terms.shift, requant=requant,
    )  # fmt: skip
    return node, (terms.factor, terms.offset), (gamma, beta)


def real(whole, terms, centered):
    """The normalization in floats, [N, W, C], in steps of the result, and what half a step of the
    mean is of these."""
    data = whole[:, :, 0].astype(float)
    data = data - data.mean(axis=1, keepdims=True) if centered else data
    root = np.sqrt((data**2).mean(axis=1, keepdims=True) + EPSILON)
    gamma, beta = (each[:, np.newaxis] for each in terms)
    values = data / root * gamma + beta, np.abs(gamma) / root * (0.5 if centered else 0)
    return tuple(each.swapaxes(1, 2) for each in values)


@pytest.mark.parametrize("centered", [True, False], ids=["mean", "rms"])
@pytest.mark.parametrize("wide", [True, False], ids=["to 16", "to 8"])
@pytest.mark.parametrize(
    ("channels", "spread", "mean"), [(8, 3000, 500), (192, 40, 9), (768, 900, -2000)]
)
def test_the_processor_is_numpy_and_both_are_near_floats(channels, spread, mean, wide, centered):
    """One channel is far from all others, as in the residual stream of a trained transformer."""
    rng = np.random.default_rng(channels)
    whole = np.rint(rng.normal(mean, spread, (2, channels, 1, 21))).astype(np.int64)
    whole[:, 1, :, ::2] = MOST
    whole = np.clip(whole, -MOST, MOST)
    node, numbers, terms = normalization(channels, wide, centered)
    result = check(node, bytes_of(whole), *numbers, dtype="int32" if wide else "int8")[:, :, 0]
    wanted, of_mean = real(whole, terms, centered)
    error = np.abs(result - (wanted - (0 if wide else 4))) - of_mean
    assert error.max() <= (6 if wide else 0.6)
    assert error.mean() <= (1.0 if wide else 0.3)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.floats(0.7, 5), st.integers(-MOST, MOST), st.integers(0, 9))
def test_any_spread_around_any_mean(channels, logarithm, mean, seed):
    """No sum overflows, and the result is within two steps of int8, half a step of the mean, and
    what four units of the sum of squares make of it, and the last bit of the mean's share of it."""
    rng = np.random.default_rng(seed)
    whole = np.rint(rng.normal(mean, 10**logarithm, (1, channels, 1, 3))).astype(np.int64)
    whole = np.clip(whole, -MOST, MOST)
    node, numbers, terms = normalization(channels, wide=False, seed=seed)
    kind = TensorType((1, 3, 1, channels), "int8")
    result = node.evaluate([bytes_of(whole), *numbers], kind)[:, :, 0]
    wanted, of_mean = real(whole, terms, centered=True)
    squares = whole[:, :, 0].var(axis=1) * channels + channels * EPSILON
    shares = whole[:, :, 0].mean(axis=1) ** 2 * channels * 2.0**-MANTISSA_BITS
    units = (4 * 2.0 ** WideMoments(channels).bits + shares) / squares
    allowed = 2 + of_mean + np.abs(wanted) * units[..., np.newaxis]
    wanted = np.clip(np.rint(wanted) - 4, -128, 127)
    assert (np.abs(result - wanted) <= allowed).all()


def test_equal_channels_have_their_offsets():
    node, (factor, offset), _ = normalization(16, wide=True)
    whole = np.full((1, 16, 1, 3), -MOST)
    result = check(node, bytes_of(whole), factor, offset, dtype="int32")
    np.testing.assert_array_equal(result, np.tile(offset, (1, 3, 1, 1)))


def test_shapes_that_do_not_fit():
    node, _, _ = normalization(4, wide=True)
    with pytest.raises(GraphError, match=r"expected bytes of an image, \[2 \* N, C, 1, W\]"):
        node.result_shape([(3, 4, 1, 3), (4,), (4,)])
    with pytest.raises(GraphError, match=r"expected a factor and an offset of shape \[4\], found"):
        node.result_shape([(2, 4, 1, 3), (4,), (3,)])
