"""Products of matrices of bytes with zero points: exact, modulo 2**32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError

NODE = ops.MatMulInteger(**NAMES, a="a", b="b", a_zero="p", b_zero="q")
BYTES = st.sampled_from(["int8", "uint8"])


def random_bytes(dtype, shape):
    info = np.iinfo(dtype)
    return numbers(dtype, shape, info.min, info.max + 1)


@settings(max_examples=8)
@given(types=st.tuples(BYTES, BYTES), stack=st.sampled_from([(), (2,)]), columns=st.booleans())
def test_products_with_zero_points(types, stack, columns):
    a, b = random_bytes(types[0], (*stack, 3, 7)), random_bytes(types[1], (7, 5))
    zeros = random_bytes(types[0], (1,)), random_bytes(types[1], (5 if columns else 1,))
    result = check(NODE, a, b, *zeros, dtype="int32", known="bpq")
    left, right = a.astype(int) - int(zeros[0][0]), b.astype(int) - zeros[1].astype(int)
    np.testing.assert_array_equal(result, np.einsum("...ik,kj->...ij", left, right))


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (
            [(3, 7), (6, 5), (1,), (1,)],
            r"matrices that fit each other, found \[3, 7\] and \[6, 5\]",
        ),
        ([(3, 7), (7, 5), (3,), (1,)], r"zero points of shapes \[1\] and \[1\] or \[5\], found "),
        ([(3, 7), (7, 5), (1,), (7,)], r"zero points of shapes \[1\] and \[1\] or \[5\], found "),
    ],
)
def test_what_does_not_fit(shapes, text):
    with pytest.raises(GraphError, match=rf"n \(MatMulInteger\): expected {text}"):
        NODE.result_shape(shapes)
