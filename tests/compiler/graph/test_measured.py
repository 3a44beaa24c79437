"""Ranges of float tensors on samples, against the values that the interpreter gives."""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.measured import measured
from vdla.compiler.graph.reference import evaluate, iter_values
from vdla.compiler.graph.types import TensorType

SHAPE = (2, 8)
RNG = np.random.default_rng(4)


def graph():
    """A product with the function of an input, a root that may be NaN, and a constant's table."""
    nodes = (
        ops.Dequantize(name="w", output="w", data="bits", scale=(0.5,), zero_point=(0,)),
        ops.Unary(name="s", output="s", data="x", function="sigmoid"),
        ops.Binary(name="p", output="p", a="s", b="w", function="mul"),
        ops.Unary(name="r", output="r", data="x", function="sqrt"),
        ops.Add(name="y", output="y", a="p", b="x"),
    )
    kinds = {name: TensorType(SHAPE, "float32") for name in ("x", "w", "s", "p", "r", "y")}
    constants = {"bits": RNG.integers(-9, 9, SHAPE).astype(np.int8)}
    tensors = {**kinds, "bits": TensorType(SHAPE, "int8")}
    return verify(Graph(("x",), ("y", "r"), nodes, tensors, constants))


def samples(count=3):
    return [{"x": RNG.standard_normal(SHAPE).astype(np.float32)} for _ in range(count)]


def test_ends_are_those_of_all_values_of_all_samples():
    some, whole = samples(), graph()
    with np.errstate(invalid="ignore"):
        ends, values = measured(whole, some), [evaluate(whole, each) for each in some]
    assert ends.keys() == {"x", "s", "p", "y"}  # r is NaN somewhere, and a constant has its own
    for name, (low, high) in ends.items():
        assert low == min(each[name].min() for each in values)
        assert high == max(each[name].max() for each in values)


def test_values_come_one_after_another_and_known_ones_are_not_computed_again():
    (inputs,) = samples(1)
    known = {**graph().constants, **inputs}
    with np.errstate(invalid="ignore"):
        values = dict(iter_values(graph(), known))
        assert [*values] == ["w", "s", "p", "r", "y"]
        fixed = dict(iter_values(graph(), {**known, "s": np.zeros(SHAPE, np.float32)}))
    assert "s" not in fixed
    np.testing.assert_array_equal(fixed["y"], inputs["x"])
