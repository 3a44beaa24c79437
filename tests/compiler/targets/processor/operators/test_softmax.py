"""Softmax along an axis in front of the last: which are computed in columns, and their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from convolutions import PAPER, check
from floats import Net
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX2, NATIVE, SSE
from vdla.compiler.targets.processor.operators import template_for
from vdla.compiler.targets.processor.operators.softmax import ColumnSoftmax
from vdla.runtime.executor import Executor


def softmax(shape, axis, before="", behind=""):
    """A softmax of the input, with what is computed before and behind it."""
    net = Net(*shape)
    x = net.unary(before, "x") if before else "x"
    y = net.add(ops.Softmax, data=x, axis=axis)
    if behind:
        y = net.unary(behind, y)
    return net.graph(y), y


def taken(graph):
    """Whether the graph's softmax is computed in columns."""
    node = next(n for n in graph.nodes if isinstance(n, ops.Softmax))
    return template_for(node, graph, NATIVE) is ColumnSoftmax


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1, 21, 16, 24), 1),
        ((7, 64), 0),
        ((2, 3, 10, 80), 2),
        ((2, 5, 2, 32, 64), 1),  # columns of several axes
        ((3, 4, 8, 2, 20), 1),
        ((2, 300, 16), 1),
    ],
)
@pytest.mark.parametrize("around", [("", ""), ("tanh", ""), ("", "tanh")], ids=str)
def test_their_numbers(shape, axis, around):
    graph, name = softmax(shape, axis, *around)
    assert taken(graph)
    check(graph, name)


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_softmax(data):
    draw = data.draw
    shape = tuple(draw(st.integers(1, 6)) for _ in range(draw(st.integers(1, 4))))
    axis = draw(st.integers(0, len(shape) - 1))
    last = draw(st.sampled_from([1, 5, 8, 16, 20, 48, 64]))
    check(*softmax((*shape, last), axis, draw(st.sampled_from(["", "tanh"]))))


@pytest.mark.parametrize("vectors", [SSE, AVX2], ids=["SSE", "AVX2"])
def test_on_other_registers(vectors, monkeypatch):
    monkeypatch.setattr(description, "_native_vectors", lambda: vectors)
    check(*softmax((2, 9, 4, 6), 1))


def test_of_float64():
    types = dict.fromkeys(("x", "y"), TensorType((3, 11, 24), "float64"))
    node = ops.Softmax(name="s", output="y", data="x", axis=1)
    graph = Graph(("x",), ("y",), (node,), types, {})
    assert taken(graph)
    x = np.random.default_rng(0).standard_normal((3, 11, 24))
    found = Executor(compile_graph(graph, PAPER, Options("cpu"))).run({"x": x}).outputs["y"]
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-14)


def test_large_numbers_are_no_infinity():
    graph, name = softmax((4, 32), 0)
    x = np.array([[500.0], [-500.0], [499.0], [0.0]], np.float32) + np.zeros(32, np.float32)
    found = Executor(compile_graph(graph, PAPER, Options("cpu"))).run({"x": x}).outputs[name]
    np.testing.assert_allclose(found[:, 0], [0.7310586, 0, 0.26894143, 0], rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis"), [((4, 64), 1), ((4, 30), 0), ((4, 3, 2), 0), ((64, 1), 0)]
)
def test_others_are_not_taken(shape, axis):
    graph, name = softmax(shape, axis)
    assert not taken(graph)
    check(graph, name)
