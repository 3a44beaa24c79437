"""Windows as channels: what a convolution sums up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nodes import NAMES, WINDOWS, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError


@settings(max_examples=10)
@given(window=WINDOWS, kernel=st.tuples(st.integers(1, 3), st.integers(1, 4)))
def test_taps(window, kernel):
    x = numbers("int8", (2, 3, 6, 7), -128, 128)
    top, left, bottom, right = window["pads"]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=np.int8(-3))
    (sy, sx), (dy, dx) = window["strides"], window["dilations"]
    rows = padded.shape[2] - dy * (kernel[0] - 1)
    columns = padded.shape[3] - dx * (kernel[1] - 1)
    assume(rows > 0 and columns > 0)
    node = ops.Im2col(**NAMES, data="x", kernel=kernel, fill=-3, **window)
    result = check(node, x)
    for channel in range(result.shape[1]):
        own, tap = divmod(channel, kernel[0] * kernel[1])
        ky, kx = divmod(tap, kernel[1])
        seen = padded[:, own, ky * dy : ky * dy + rows : sy, kx * dx : kx * dx + columns : sx]
        np.testing.assert_array_equal(result[:, channel], seen)


def test_an_image_smaller_than_the_window():
    node = ops.Im2col(**NAMES, data="x", kernel=(3, 3), fill=0)
    with pytest.raises(GraphError, match="expected a padded image no smaller than its 3x3 window"):
        node.result_shape([(1, 2, 2, 9)])
