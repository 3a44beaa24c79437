"""Steps of recurrent layers in integers: near the real functions, and within int32."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.ops.fixed_point import HIGH, LOW, STEP, Arrays
from vdla.compiler.graph.ops.recurrent import (
    MOST_FACTOR,
    QGates,
    QGruReset,
    QGruState,
    QLstmCell,
    QLstmState,
    QNarrow,
    factors_of,
)
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType


class Checked(Arrays):
    """Arithmetic that fails where a value leaves an int32, or an operand its instruction's bits."""

    def add(self, x, y):
        return within(super().add(x, y))

    def subtract(self, x, y):
        return within(super().subtract(x, y))

    def multiply(self, x, y):
        within(y, 25)
        return within(super().multiply(x, y))

    def increase(self, x, number):
        return within(super().increase(x, number))

    def left(self, x, bits):
        return within(super().left(x, bits))


def within(values, bits=32):
    assert -(2 ** (bits - 1)) <= values.min()
    assert values.max() < 2 ** (bits - 1)
    return values


ENDS = np.array([LOW, LOW + 1, -STEP, -1, 0, 1, STEP, HIGH - 1, HIGH])


@pytest.mark.parametrize("kind", [QLstmCell, QLstmState, QGruReset, QGruState, QNarrow])
def test_nothing_leaves_an_int32(kind):
    """All operands at their ends, in every combination."""
    counts = list(kind.GATES.values())
    values = np.stack(np.meshgrid(*[ENDS] * sum(counts), indexing="ij"), -1)
    columns = iter(np.moveaxis(values.reshape(-1, sum(counts)), -1, 0))
    result = kind.function(Checked(), [[next(columns) for _ in range(n)] for n in counts])
    if "int8" not in kind.WRITES:
        assert result.min() >= LOW
        assert result.max() <= HIGH


@settings(max_examples=200)
@given(st.lists(st.tuples(st.floats(1e-9, 1e-2), st.integers(1, 1 << 24)), min_size=1, max_size=4))
def test_factors_are_near_the_scales(channels):
    scale, bounds = (np.array(each) for each in zip(*channels, strict=True))
    if (scale * bounds).max() > 1 << 13:
        return
    before, after, factors = factors_of(scale, bounds)
    most = (bounds >> before) + 1
    assert factors.max() < MOST_FACTOR
    assert (most * factors).max() + (1 << after >> 1) < 1 << 31
    real = bounds * scale
    result = Arrays().rounded((bounds + (1 << before >> 1) >> before) * factors, after) / STEP
    of_shift, of_factor = scale * 2.0 ** (before - 1), most / 2.0 ** (after + 1) / STEP
    assert (np.abs(result - real) <= 1 / STEP + of_shift + of_factor).all()


def test_sums_that_fixed_point_cannot_hold():
    with pytest.raises(ValueError, match="expected scales of sums below"):
        factors_of(np.array([1e3]), np.array([1 << 20]))


def gates_node(**changes):
    fields = {"name": "n", "output": "y", "data": "x", "weight": "w", "bias": "b", "factor": "f"}
    return QGates(**{**fields, "before": 3, "after": 12, **changes})


def graph_of(node, shapes, wide=("z",)):
    """A graph of a node; ``wide`` are the inputs of int32."""
    tensors = {
        name: TensorType(shape, "int32" if name in (*wide, "b", "f", "y") else "int8")
        for name, shape in shapes.items()
    }
    constants = {
        name: np.zeros(shapes[name], tensors[name].dtype) for name in "wbf" if name in shapes
    }
    inputs = tuple(name for name in node.inputs if name not in constants)
    return Graph(inputs, ("y",), (node,), tensors, constants)


SHAPES = {"x": (3, 9), "w": (4, 5, 9), "b": (4, 5), "f": (4, 5), "y": (12, 5)}


def test_gates_are_rows_of_their_own():
    rng = np.random.default_rng(3)
    weight = rng.integers(-127, 128, SHAPES["w"])
    bias, scale = rng.integers(-999, 999, (4, 5)), rng.uniform(1e-4, 4e-4, (4, 5))
    before, after, factor = factors_of(scale, np.abs(weight).sum(2) * 128 + np.abs(bias))
    graph = graph_of(gates_node(before=before, after=after, addend="z"), {**SHAPES, "z": (12, 5)})
    rounded = bias + (1 << before >> 1)
    graph.constants.update(w=weight.astype(np.int8), b=rounded.astype(np.int32), f=factor)
    x, z = rng.integers(-128, 128, (3, 9), np.int8), rng.integers(-9999, 9999, (12, 5), np.int32)
    result = evaluate(verify(graph), {"x": x, "z": z})["y"].reshape(3, 4, 5)
    real = (np.einsum("ni,ghi->ngh", x.astype(float), weight) + bias) * scale
    wanted = np.clip(real * STEP + z.reshape(3, 4, 5), LOW, HIGH)
    assert np.abs(result - wanted).max() < 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": (3, 8)}, r"expected data \[N, I\] and weights \[G, H, I\]"),
        ({"b": (4, 6)}, r"expected biases and factors as \[4, 5\]"),
        ({"z": (3, 5)}, r"expected an addend of shape \[12, 5\]"),
    ],
)
def test_gates_that_do_not_fit(changes, message):
    node = gates_node(addend="z" if "z" in changes else None)
    with pytest.raises(GraphError, match=message):
        verify(graph_of(node, {**SHAPES, **changes}))


def test_cells_whose_gates_are_missing():
    node = QLstmCell(name="n", output="y", gates="z", cell="c")
    shapes = {"z": (8, 5), "c": (3, 5), "y": (2, 5)}
    with pytest.raises(GraphError, match="expected 1 rows of 5 for each vector"):
        verify(graph_of(node, shapes, ("z", "c")))
