"""Products of factors that are rounded by scales of their own."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.dynamic_matmul import MOST_SUMMED, DynamicMatMul
from vdla.compiler.graph.types import TensorType

RNG = np.random.default_rng(3)


def product(a, b, bits):
    node = DynamicMatMul(name="n", output="y", a="a", b="b", bits=bits, gradient_bits=16)
    kind = TensorType(node.result_shape([a.shape, b.shape]), "float32")
    return node.evaluate([a, b], kind)


def rounded(x, most):
    """The floats that an array is rounded to, in float64; steps are counted in float32."""
    scale = np.abs(x).max() / np.float32(most)
    return np.rint(x / scale).astype(np.float64) * scale


@pytest.mark.parametrize("bits", [(8, 8), (8, 16), (16, 8), (16, 16)])
@pytest.mark.parametrize("shapes", [((5, 70), (70, 3)), ((2, 1, 4, 9), (3, 9, 2))])
def test_factors_are_rounded_and_sums_are_exact(bits, shapes):
    a, b = (RNG.standard_normal(shape).astype(np.float32) * 3 for shape in shapes)
    most = {8: 127, 16: 127 * 257}
    exact = rounded(a, most[bits[0]]) @ rounded(b, most[bits[1]])
    np.testing.assert_allclose(product(a, b, bits), exact, rtol=2e-5, atol=2e-5)


def test_sixteen_bits_are_near_the_floats():
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((6, 50), (50, 6)))
    assert np.abs(product(a, b, (16, 16)) - a @ b).max() < 2e-3
    assert np.abs(product(a, b, (8, 8)) - a @ b).max() > 2e-3


def test_zeros_have_a_product():
    zeros = np.zeros((2, 3), np.float32)
    assert not product(zeros, np.ones((3, 2), np.float32), (8, 16)).any()


def test_what_is_no_number_stays_none():
    a = np.array([[np.nan, 1]], np.float32)
    assert np.isnan(product(a, np.ones((2, 1), np.float32), (8, 8))).all()


def test_sums_that_an_int32_does_not_hold():
    shapes = (1, MOST_SUMMED + 1), (MOST_SUMMED + 1, 1)
    node = DynamicMatMul(name="n", output="y", a="a", b="b", bits=(8, 8), gradient_bits=16)
    expected = rf"n \(DynamicMatMul\): expected sums of {MOST_SUMMED} products at most, found"
    with pytest.raises(GraphError, match=expected):
        node.result_shape(shapes)
