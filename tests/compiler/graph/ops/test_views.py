"""Tensors that are others' bytes."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.blocks import pack


def view(shape, lanes=4):
    return ops.QView(**NAMES, data="x", shape=shape, lanes=lanes)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((2, 8, 1, 6), (8, 4, 1, 3)),  # runs of pixels
        ((8, 4, 1, 3), (2, 8, 1, 6)),
        ((1, 12, 1, 5), (3, 4, 1, 5)),  # heads
        ((2, 6, 4, 3), (2, 6, 1, 12)),  # no whole blocks
    ],
)
def test_the_bytes_of_an_image_as_another_one(before, after):
    x = numbers("int8", before, -128, 128)
    viewed = check(view(after), x)
    assert viewed.shape == after
    np.testing.assert_array_equal(pack(viewed, 4).ravel(), pack(x, 4).ravel())
    np.testing.assert_array_equal(check(view(before), viewed), x)


@pytest.mark.parametrize("shape", [(1, 6, 1, 6), (2, 6, 1, 2), (1, 4, 1, 9)])
def test_other_bytes_are_no_view(shape):
    expected = r"an image with the bytes of \[\d, \d, 1, \d\] in blocks of 4, found \[1, 6, 1, 4\]"
    with pytest.raises(GraphError, match=expected):
        view(shape).result_shape([(1, 6, 1, 4)])
