"""Products of two quantized tensors, or of one and a gate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes import NAMES, check, narrowed, numbers

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.multiply import QMultiply
from vdla.compiler.graph.types import Requant

PAIR = {**NAMES, "a": "a", "b": "b"}
ZERO = st.integers(-128, 127)


@settings(max_examples=8)
@given(zeros=st.tuples(ZERO, ZERO), gate=st.booleans(), scale=st.floats(2.0**-10, 0.125, width=32))
def test_products(zeros, gate, scale):
    a = numbers("int8", (2, 5, 3, 4), -128, 128)
    b = numbers("int8", (2, 5, 1, 1) if gate else a.shape, -128, 128)
    requant = Requant((scale,), -3, -99, 101)
    result = check(QMultiply(**PAIR, zeros=zeros, requant=requant), a, b)
    wide = (a.astype(int) - zeros[0]) * (b.astype(int) - zeros[1])
    np.testing.assert_array_equal(result, narrowed(wide, scale, requant))


def test_operands_that_do_not_fit():
    node = QMultiply(**PAIR, zeros=(0, 0), requant=Requant((1.0,), 0))
    expected = (
        r"n \(QMultiply\): expected a second operand of shape \[2, 5, 3, 4\], or one value for "
        r"each channel, found \[1, 5, 1, 1\]"
    )
    with pytest.raises(GraphError, match=expected):
        node.result_shape([(2, 5, 3, 4), (1, 5, 1, 1)])
