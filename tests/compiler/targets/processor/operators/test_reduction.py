"""Reductions with columns in the lanes of vectors: which are taken, and their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from convolutions import PAPER, check
from floats import Net
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX2, NATIVE, SSE
from vdla.compiler.targets.processor.operators import template_for
from vdla.compiler.targets.processor.operators.reduction import Reduction
from vdla.runtime.executor import Executor


def reduction(shape, axes, function="sum", before="", behind="", keepdims=True):
    """A reduction of the input, with what is computed before and behind it."""
    net = Net(*shape)
    x = net.unary(before, "x") if before else "x"
    y = net.add(ops.Reduce, data=x, function=function, axes=axes, keepdims=keepdims)
    if behind:
        y = net.unary(behind, y)
    return net.graph(y), y


def taken(graph):
    """Whether the graph's last reduction is computed in columns."""
    node = next(n for n in graph.nodes if isinstance(n, ops.Reduce | ops.ArgReduce))
    return template_for(node, graph, NATIVE) is Reduction


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((40, 128), (0,)),  # whole tiles
        ((3, 50, 300), (1,)),  # tiles that overlap
        ((2, 7, 5, 33), (1, 2)),  # as one axis
        ((5, 4, 6, 9, 20), (1, 3)),  # that don't lie together
        ((2, 200, 7, 11), (1,)),  # columns of several axes, a sum of partial sums
        ((9, 17), (0,)),  # a vector and a column
        ((4, 1500), (0,)),  # several bands
        ((3, 5, 2, 32, 64), (1,)),  # rows that are several tiles, of several axes
        ((2, 6, 3, 16, 20), (1,)),  # and that begin inside one
    ],
)
@pytest.mark.parametrize("function", ["sum", "mean", "max", "prod"])
@pytest.mark.parametrize("keepdims", [True, False])
def test_their_numbers(shape, axes, function, keepdims):
    graph, name = reduction(shape, axes, function, keepdims=keepdims)
    assert taken(graph)
    check(graph, name)


@pytest.mark.parametrize("before", ["", "exp"])
@pytest.mark.parametrize("behind", ["", "tanh"])
@pytest.mark.parametrize("shape", [(3, 20, 8, 8), (2, 30, 5, 7), (2, 5, 2, 16, 32)])
def test_what_is_computed_around_them(before, behind, shape):
    """In the same function, in the same vectors."""
    graph, name = reduction(shape, (1,), "sum", before, behind)
    assert taken(graph)
    check(graph, name)


def test_a_long_sum_is_one_of_partial_sums():
    """One after the other, 100,000 additions of float32 are off by some 1e-4 of the sum."""
    graph, name = reduction((100_000, 16), (0,))
    x = np.random.default_rng(1).uniform(0, 1, (100_000, 16)).astype(np.float32)
    found = Executor(compile_graph(graph, PAPER, Options("cpu"))).run({"x": x}).outputs[name]
    np.testing.assert_allclose(found, x.sum(axis=0, dtype=np.float64)[None], rtol=2e-6)


@pytest.mark.parametrize("vectors", [SSE, AVX2], ids=["SSE", "AVX2"])
def test_on_other_registers(vectors, monkeypatch):
    monkeypatch.setattr(description, "_native_vectors", lambda: vectors)
    graph, name = reduction((6, 40, 45), (1,), "mean", "exp")
    check(graph, name)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("shape", [(2, 21, 6, 11), (30, 77, 1), (3, 9, 16)])
def test_places_of_the_best(largest, last, shape):
    """Of equal ones the first or the last; NaN is never better than a number."""
    net = Net(*shape)
    axis = int(len(shape) > 3 or shape[0] == 3)
    fields = {"axis": axis, "largest": largest, "last": last}
    y = net.add(ops.ArgReduce, data="x", dtype="int64", **fields)
    graph = net.graph(y)
    assert taken(graph)
    x = np.random.default_rng(2).integers(-3, 3, shape).astype(np.float32)
    found = Executor(compile_graph(graph, PAPER, Options("cpu"))).run({"x": x}).outputs[y]
    np.testing.assert_array_equal(found, evaluate(graph, {"x": x})[y])


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_reduction(data):
    rank = data.draw(st.integers(2, 5))
    shape = tuple(data.draw(st.integers(1, 9)) for _ in range(rank - 1))
    axes = tuple(n for n in range(rank - 1) if data.draw(st.booleans())) or (0,)
    function = data.draw(st.sampled_from(["sum", "mean", "max", "min"]))
    before = data.draw(st.sampled_from(["", "tanh"]))
    whole = (*shape, data.draw(st.integers(1, 70) | st.sampled_from([16, 32, 64, 128])))
    behind = data.draw(st.sampled_from(["", "", "tanh"]))
    check(*reduction(whole, axes, function, before, behind, keepdims=data.draw(st.booleans())))


@pytest.mark.parametrize(
    ("shape", "axes", "reason"),
    [
        ((40, 128), (1,), "its columns fill no vector"),
        ((40, 3), (0,), "its columns fill no vector"),
        ((2, 128), (0,), "it has few steps"),
    ],
)
def test_what_is_left_to_others(shape, axes, reason):
    graph, name = reduction(shape, axes)
    assert Reduction.refusal(graph.nodes[0], graph, NATIVE) == reason
    check(graph, name)
