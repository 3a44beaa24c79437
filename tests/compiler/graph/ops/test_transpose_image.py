"""Channels and pixels in each other's place."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.transpose_image import QTransposeImage


def test_channels_and_pixels_in_each_others_place():
    node = QTransposeImage(**NAMES, data="x")
    x = numbers("int8", (2, 5, 1, 3), -128, 128)
    np.testing.assert_array_equal(check(node, x), x.transpose(0, 3, 2, 1))
    with pytest.raises(GraphError, match=r"expected an image \[N, C, 1, W\], found \[1, 2, 3, 4\]"):
        node.result_shape([(1, 2, 3, 4)])
