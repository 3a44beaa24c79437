"""Convolutions as products of their windows: which are taken, and their numbers."""

from __future__ import annotations

import pytest
from convolutions import check, convolution
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.targets.processor.operators import template_for
from vdla.compiler.targets.processor.operators.unfolded import Unfolded
from vdla.compiler.targets.processor.rewrites.images import block_images


def taken(graph):
    """Whether the graph's first node is a product of windows."""
    return template_for(graph.nodes[0], graph, NATIVE) is Unfolded


@pytest.mark.parametrize(
    ("data", "outputs", "kernel", "fields"),
    [
        ((3, 1, 1, 500), 258, (1, 256), {"strides": (1, 64)}),  # a spectrum of few windows
        ((1, 3, 12, 12), 13, (4, 4), {"strides": (4, 4)}),  # patches
        ((2, 5, 7, 6), 20, (3, 3), {"pads": (1, 1, 1, 1), "dilations": (1, 2)}),
        ((1, 32, 9, 9), 36, (3, 3), {"groups": 2, "pads": (0, 2, 1, 0)}),
        ((1, 24, 6, 8), 27, (1, 1), {"groups": 3}),
    ],
)
@pytest.mark.parametrize("epilogue", ["", "tanh", "add"])
def test_their_numbers(data, outputs, kernel, fields, epilogue):
    channels = data[1] // fields.get("groups", 1)
    graph, name = convolution(data, outputs, kernel, epilogue, channels=channels, **fields)
    assert taken(graph)
    check(graph, name)


@settings(max_examples=12)
@given(data=st.data())
def test_any_convolution(data):
    draw = data.draw
    groups, n = draw(st.sampled_from((1, 2))), draw(st.integers(1, 2))
    channels, outputs = draw(st.integers(1, 5)), groups * draw(st.integers(8, 19))
    kernel = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    image = draw(st.integers(6, 12)), draw(st.integers(7, 13))
    fields = {
        "groups": groups,
        "strides": (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
        "pads": tuple(draw(st.integers(0, 2)) for _ in range(4)),
    }
    shape = (n, groups * channels, *image)
    graph, name = convolution(shape, outputs, kernel, channels=channels, **fields)
    check(graph, name)


@pytest.mark.parametrize(
    ("data", "outputs", "kernel", "groups"),
    [
        ((1, 3, 9, 40), 3, (3, 3), 1),  # rows fill vectors
        ((1, 3, 9, 9), 32, (3, 3), 1),  # channels fill blocks
        ((1, 8, 9, 9), 8, (3, 3), 8),  # one channel each
        ((1, 1, 3, 3), 9, (2, 2), 1),  # small
    ],
)
def test_others_are_not_taken(data, outputs, kernel, groups):
    graph, _ = convolution(data, outputs, kernel, channels=data[1] // groups, groups=groups)
    assert not taken(block_images(graph, NATIVE.vectors))
