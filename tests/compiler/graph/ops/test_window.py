"""Nodes whose windows step over images: where they take place, and what they see."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nodes import NAMES, WINDOWS, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError


def pool(kernel=(3, 2), **fields):
    return ops.MaxPool(**NAMES, data="x", kernel=kernel, **fields)


@settings(max_examples=40)
@given(window=WINDOWS, kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)))
def test_what_a_place_sees(window, kernel):
    """Each place is where a stride leads to, as long as its last tap is inside."""
    node, x = pool(kernel, **window), numbers("int32", (1, 2, 6, 7), 1, 99)
    top, left, bottom, right = window["pads"]
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=-1)
    steps = list(zip(kernel, window["strides"], window["dilations"], padded.shape[2:], strict=True))
    starts = [range(0, size - d * (k - 1), stride) for k, stride, d, size in steps]
    assume(all(len(each) for each in starts))
    assert node.places([x.shape]) == tuple(len(each) for each in starts)
    seen = node.views(x, kernel, -1)
    (_, _, dy, _), (_, _, dx, _) = steps
    for ky, kx in np.ndindex(*kernel):
        taps = padded[:, :, [y + ky * dy for y in starts[0]]][..., [x + kx * dx for x in starts[1]]]
        np.testing.assert_array_equal(seen[:, :, ky, kx], taps)


@pytest.mark.parametrize(
    ("node", "shape", "text"),
    [
        (pool(), (2, 3, 4), r"data of shape \[N, C, H, W\], found \[2, 3, 4\]"),
        (pool(strides=(0, 1)), (1, 1, 5, 5), r"strides of at least 1, found \[0, 1\]"),
        (pool(dilations=(1, 0)), (1, 1, 5, 5), r"dilations of at least 1, found \[1, 0\]"),
        (pool(pads=(0, 0, -1, 0)), (1, 1, 5, 5), r"pads of at least 0, found \[0, 0, -1, 0\]"),
        (pool(pads=(0, 1, 0, 1)), (1, 1, 2, 5),
         r"a padded image no smaller than its 3x2 window, found \[2, 7\]"),
    ],
)  # fmt: skip
def test_windows_that_do_not_fit(node, shape, text):
    with pytest.raises(GraphError, match=rf"n \(MaxPool\): expected {text}"):
        node.result_shape([shape])
