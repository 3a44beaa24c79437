"""Vectors one behind another as pixels of an image, and back."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.exchange import QExchange


def test_vectors_as_pixels_and_back():
    x = numbers("int8", (7, 5), -128, 128)
    image = check(QExchange(**NAMES, data="x"), x)
    np.testing.assert_array_equal(image, x.T.reshape(1, 5, 1, 7))
    np.testing.assert_array_equal(check(QExchange(**NAMES, data="x"), image), x)
    with pytest.raises(GraphError, match=r"expected vectors \[N, C\] or an image \[1, C, 1, N\]"):
        QExchange(**NAMES, data="x").result_shape([(1, 2, 3)])
    with pytest.raises(GraphError, match=r"or an image \[1, C, 1, N\], found \[2, 3, 1, 4\]"):
        QExchange(**NAMES, data="x").result_shape([(2, 3, 1, 4)])
