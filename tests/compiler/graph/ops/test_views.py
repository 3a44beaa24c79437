"""Tensors that are others' bytes."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.blocks import pack
from vdla.compiler.graph.ops.views import View
from vdla.compiler.graph.types import Requant, TensorType


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


def kinds(block, **shapes):
    return {name: TensorType(shape, "int8", block=block) for name, shape in shapes.items()}


def test_parts_where_the_result_has_them():
    node = ops.QConcatView(
        **NAMES, parts=("a", "b"), axis=1, zeros=(3, 3), requant=Requant((1.0, 1.0), 3)
    )
    a, b = numbers("int8", (1, 8, 2, 3), -128, 128), numbers("int8", (1, 5, 2, 3), -128, 128)
    y = check(node, a, b)
    np.testing.assert_array_equal(y, np.concatenate([a, b], axis=1))
    views = node.views(kinds(4, a=a.shape, b=b.shape, y=y.shape))
    assert views == {"a": View("y", 0), "b": View("y", 8 * 2 * 3)}
    whole = pack(y, 4).ravel()
    for name, part in (("a", a), ("b", b)):
        own = pack(part, 4).ravel()
        start = views[name].offset
        np.testing.assert_array_equal(whole[start : start + own.size], own)


@pytest.mark.parametrize(("images", "channels"), [((1, 2), range(12)), ((2,), range(4, 8))])
def test_a_slice_where_the_data_has_it(images, channels):
    places = *images, *channels, *range(2), *range(3)
    node = ops.QTakeView(**NAMES, data="x", shape=(len(images), len(channels), 2, 3), places=places)
    x = numbers("int8", (3, 12, 2, 3), -128, 128)
    y = check(node, x)
    np.testing.assert_array_equal(y, x[images[0] : images[-1] + 1, channels[0] : channels[-1] + 1])
    views = node.views(kinds(4, x=x.shape, y=y.shape))
    own, start = pack(y, 4).ravel(), views["y"].offset
    assert views["y"].whole == "x"
    np.testing.assert_array_equal(pack(x, 4).ravel()[start : start + own.size], own)


def test_a_view_is_where_the_data_is():
    assert view((8, 4, 1, 3)).views({}) == {"y": View("x", 0)}
