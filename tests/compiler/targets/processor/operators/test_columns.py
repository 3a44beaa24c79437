"""Convolutions to channels that fill no block: which are taken, and their numbers."""

from __future__ import annotations

import pytest
from convolutions import check, convolution
from floats import Net
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph import ops
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX2, AVX512, NATIVE, SSE
from vdla.compiler.targets.processor.operators import template_for
from vdla.compiler.targets.processor.operators.columns import Columns
from vdla.compiler.targets.processor.rewrites.images import block_images
from vdla.isa.config import load_config

PAPER = load_config("paper")


def taken(graph):
    """Whether the graph's first node is computed by columns."""
    return template_for(graph.nodes[0], graph, NATIVE) is Columns


@pytest.mark.parametrize(
    ("data", "outputs", "kernel", "fields"),
    [
        ((1, 1, 1, 500), 10, (1, 33), {"strides": (1, 16)}),  # a filter bank over a signal
        ((1, 1, 1, 300), 3, (1, 40), {"strides": (1, 7), "pads": (0, 5, 0, 9)}),
        ((1, 16, 20, 32), 1, (1, 1), {}),  # rows are whole vectors: read where they lie
        ((2, 5, 13, 21), 1, (3, 3), {"pads": (1, 1, 1, 1)}),
        ((1, 3, 19, 35), 10, (3, 3), {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
        ((1, 3, 40, 41), 7, (5, 4), {"strides": (2, 2), "pads": (2, 0, 1, 3)}),
        ((1, 4, 9, 70), 13, (3, 3), {"strides": (3, 2), "dilations": (1, 3)}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("epilogue", ["", "tanh", "add"])
def test_their_numbers(data, outputs, kernel, fields, epilogue):
    graph, name = convolution(data, outputs, kernel, epilogue, **fields)
    assert taken(graph)
    check(graph, name)


@pytest.mark.parametrize("vectors", [SSE, AVX2, AVX512], ids=["SSE", "AVX2", "AVX-512"])
def test_on_other_registers(vectors, monkeypatch):
    monkeypatch.setattr(description, "_native_vectors", lambda: vectors)
    graph, name = convolution((1, 3, 12, 37), 5, (3, 3), "tanh", strides=(1, 2), pads=(1, 1, 1, 1))
    check(graph, name)


@st.composite
def convolutions(draw):
    """Convolutions of any geometry whose rows may fill a vector."""
    kernel = draw(st.integers(1, 4)), draw(st.integers(1, 9))
    fields = {
        "strides": (draw(st.integers(1, 3)), draw(st.integers(1, 9))),
        "dilations": (draw(st.integers(1, 2)), draw(st.integers(1, 3))),
        "pads": tuple(draw(st.integers(0, 4)) for _ in range(4)),
    }
    reach = [d * (k - 1) + 1 for d, k in zip(fields["dilations"], kernel, strict=True)]
    high = reach[0] + draw(st.integers(0, 6))
    wide = reach[1] + fields["strides"][1] * draw(st.integers(8, 40))
    data = draw(st.integers(1, 2)), draw(st.integers(1, 4)), high, wide
    outputs = draw(st.sampled_from([1, 2, 3, 5, 6, 7, 9, 13]))
    return convolution(data, outputs, kernel, bias=draw(st.booleans()), **fields)


@settings(max_examples=12, deadline=None)
@given(case=convolutions())
def test_any_geometry(case):
    check(*case)


def test_what_is_left_to_others():
    def refusal(graph):
        return Columns.refusal(graph.nodes[0], graph, NATIVE)

    grouped = Net(1, 4, 20, 64)
    grouped.add(ops.Conv2d, data="x", weight=grouped.constant(6, 2, 1, 1), groups=2)
    assert refusal(grouped.graph("t0")) == "it has groups, or weights that aren't known"
    narrow, _ = convolution((1, 4, 20, 3), 5, (1, 1))
    assert refusal(narrow) == "its rows fill no vector"
    blocked, name = convolution((1, 4, 20, 64), 16, (1, 1))
    laid_out = block_images(blocked, NATIVE.vectors)
    assert refusal(laid_out) == "its channels lie in blocks"
    check(blocked, name)
