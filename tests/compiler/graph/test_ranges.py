"""Ranges that follow from a graph: no number that it computes is outside, and most are near."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ranges import MARGIN, Ranges
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType

SHAPE = (2, 3, 16)
REAL = TensorType(SHAPE, "float32")
RNG = np.random.default_rng(5)


class Floats:
    """A graph under construction: an int8 input ``q``, and floats behind it."""

    def __init__(self):
        self.nodes, self.constants = [], {}
        self.tensors = {"q": TensorType(SHAPE, "int8"), "x": REAL}
        self.nodes.append(
            ops.Dequantize(name="x", output="x", data="q", scale=(0.05,), zero_point=(7,))
        )

    def constant(self, name, array):
        self.constants[name] = array = np.asarray(array, np.float32)
        self.tensors[name] = TensorType(array.shape, "float32")
        return name

    def node(self, kind, name, shape=SHAPE, **fields):
        self.nodes.append(kind(name=name, output=name, **fields))
        self.tensors[name] = TensorType(shape, "float32")
        return name

    def graph(self, *outputs):
        nodes = tuple(self.nodes)
        return verify(Graph(("q",), outputs, nodes, self.tensors, self.constants))


def layer_norm(f, x, gamma, beta):
    """A normalization along the last axis, in pieces."""
    rows = (*SHAPE[:-1], 1)
    mean = f.node(ops.Reduce, "mean", rows, data=x, function="mean", axes=(2,))
    above = f.node(ops.Binary, "above", a=x, b=mean, function="sub")
    square = f.node(ops.Binary, "square", a=above, b=above, function="mul")
    power = f.node(ops.Reduce, "power", rows, data=square, function="mean", axes=(2,))
    under = f.node(ops.Add, "under", rows, a=power, b=f.constant("epsilon", 1e-5))
    root = f.node(ops.Unary, "root", rows, data=under, function="sqrt")
    ratio = f.node(ops.Binary, "ratio", a=above, b=root, function="div")
    scaled = f.node(ops.Binary, "scaled", a=ratio, b=f.constant("gamma", gamma), function="mul")
    return f.node(ops.Add, "norm", a=scaled, b=f.constant("beta", beta))


def whole():
    """A sum with a constant, a GELU, a normalization, a softmax, and what moves elements."""
    f = Floats()
    moved = f.node(ops.Add, "moved", a="x", b=f.constant("c", RNG.normal(0, 2, 16)))
    error = f.node(ops.Unary, "error", data=moved, function="erf")
    f.node(ops.Binary, "gelu", a=moved, b=error, function="mul")
    f.node(ops.Binary, "less", a="x", b=moved, function="sub")
    f.node(ops.Binary, "product", a="x", b="gelu", function="mul")
    f.node(ops.Add, "sum", a="gelu", b=layer_norm(f, moved, RNG.normal(1, 1, 16), np.ones(16)))
    f.node(ops.Softmax, "shares", data="sum", axis=2)
    f.node(ops.Reshape, "flat", (6, 16), data="sum")
    f.node(ops.Concat, "both", (4, 3, 16), parts=("sum", "x"), axis=0)
    return f.graph("shares", "flat", "both", "less", "product")


@pytest.mark.parametrize("case", ["ends", "random"])
def test_no_number_is_outside(case):
    graph = whole()
    ranges = Ranges(graph)
    ends = np.where(RNG.random(SHAPE) < 0.5, -128, 127)
    q = (ends if case == "ends" else RNG.integers(-128, 128, SHAPE)).astype(np.int8)
    values = evaluate(graph, {"q": q})
    named = {"moved", "gelu", "less", "product", "norm", "sum", "shares", "flat", "both"}
    assert named <= ranges.known.keys()
    for name, own in ranges.known.items():
        if name in values:
            slack = 1e-5 * max(map(abs, own.ends))
            assert (values[name] >= own.low - slack).all(), name
            assert (values[name] <= own.high + slack).all(), name


def test_ranges_are_those_that_numbers_reach():
    ranges = Ranges(whole())
    c = ranges.graph.constants["c"]
    assert ranges.known["x"].ends == pytest.approx(((-128 - 7) * 0.05, (127 - 7) * 0.05))
    np.testing.assert_allclose(ranges.known["moved"].low, c - 135 * 0.05, rtol=1e-6)
    low, high = ranges.known["gelu"].ends  # x * erf(x) is never negative, and even
    assert -0.01 <= low <= 0
    assert high == pytest.approx(np.abs([(6 + c).max(), (c - 6.75).min()]).max(), rel=1e-3)
    gamma = np.abs(ranges.graph.constants["gamma"])
    np.testing.assert_allclose(ranges.known["norm"].high, 1 + 4 * gamma, rtol=1e-6)


def test_what_tensors_are_functions_of():
    ranges = Ranges(whole())
    assert ranges.roots["gelu"] == "moved"
    assert ranges.roots["moved"] == "moved"  # whose constant has several numbers
    assert ranges.roots["sum"] == "sum"
    assert ranges.path("gelu") == {"gelu", "error"}
    points = np.array([-1.0, 0.0, 2.0], np.float32)
    wanted = [0.842701, 0, 2 * 0.995322]
    np.testing.assert_allclose(ranges.at("gelu", points), wanted, atol=1e-5)


def test_an_input_has_the_range_that_is_given():
    kind = TensorType((4,), "float32")
    node = ops.Add(name="y", output="y", a="x", b="x")
    graph = verify(Graph(("x",), ("y",), (node,), {"x": kind, "y": kind}))
    assert not Ranges(graph).known
    low, high = Ranges(graph, {"x": (-1.0, 3.0)}).known["y"].ends
    assert (low, high) == pytest.approx((-2.0, 6.0), abs=1e-2)


def test_samples_narrow_what_follows_from_rules_and_give_what_does_not():
    """A measured range has a margin, and never goes beyond the rule's."""
    f = Floats()
    f.node(ops.Unary, "s", data="x", function="sigmoid")
    f.node(ops.Softmax, "shares", data="x", axis=2)
    f.node(ops.Reduce, "total", (2, 3, 1), data="s", function="sum", axes=(2,))
    ends = {"x": (-1.0, 1.0), "s": (0.25, 0.75), "shares": (0.01, 0.05), "total": (4.0, 8.0)}
    graph = f.graph("shares", "total")
    rules, known = Ranges(graph).known, Ranges(graph, ends).known
    assert "total" not in rules
    assert known["total"].ends == (4.0 - 4 * MARGIN, 8.0 + 4 * MARGIN)
    assert known["s"].ends == (0.25 - 0.5 * MARGIN, 0.75 + 0.5 * MARGIN)
    assert known["shares"].ends == pytest.approx((0.01 - 0.04 * MARGIN, 0.05 + 0.04 * MARGIN))
    assert known["x"].ends == rules["x"].ends  # integers', which nothing is beyond
    wide = Ranges(graph, {"shares": (0.0, 7.0)}).known
    assert wide["shares"].ends == (0.0, 1.0)


def test_the_parts_of_a_normalization_have_no_range():
    """They are computed in more bits than a tensor of integers would have."""
    f = Floats()
    f.node(ops.Reduce, "mean", (2, 3, 1), data="x", function="mean", axes=(2,))
    f.node(ops.Binary, "above", a="x", b="mean", function="sub")
    f.node(ops.Binary, "square", a="above", b="above", function="mul")
    f.node(ops.Reduce, "power", (2, 3, 1), data="square", function="mean", axes=(2,))
    f.node(ops.Add, "under", (2, 3, 1), a="power", b=f.constant("epsilon", 1e-5))
    f.node(ops.Unary, "root", (2, 3, 1), data="under", function="sqrt")
    f.node(ops.Binary, "y", a="above", b="root", function="div")
    graph = f.graph("y")
    parts = ("mean", "above", "square", "power", "under", "root")
    ranges = Ranges(graph, dict.fromkeys((*parts, "y"), (-1.0, 1.0)))
    assert ranges.inside == dict.fromkeys(parts, "x")
    assert not ranges.known.keys() & {*parts}
    assert "y" in ranges.known
