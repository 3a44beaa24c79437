"""Running totals and the first of an order: right for any data, and not a loop more than needed."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.tir.ir import Alloc, For, If, Seq

SHAPE = (3, 7, 2)
DATA = {**NAMES, "data": "x"}
DTYPES = st.sampled_from(["float32", "float16", "int8", "uint64"])


def kernel(node, shape, dtype):
    result = "int64" if isinstance(node, ops.TopK) and node.places else dtype
    types = {
        "x": TensorType(shape, dtype),
        "y": TensorType(node.result_shape([shape]), result),
    }
    return node_function(node, Graph(("x",), ("y",), (node,), types)).func, types["y"]


def exact(node, x):
    func, kind = kernel(node, x.shape, str(x.dtype))
    found = np.empty(kind.shape, kind.dtype)
    jit([func])[func.name](x, found)
    np.testing.assert_array_equal(found, node.evaluate([x], kind))


def steps(stmt):
    """How often a statement's innermost part runs at most."""
    match stmt:
        case For(_, extent, _, body):
            return extent * steps(body)
        case Seq(stmts):
            return sum(steps(each) for each in stmts)
        case If(_, then, orelse):
            return steps(then) + (steps(orelse) if orelse is not None else 0)
        case Alloc(_, body):
            return steps(body)
    return 1


@settings(max_examples=12, deadline=None)
@given(data=st.data(), dtype=DTYPES, axis=st.integers(0, 2), largest=st.booleans())
def test_the_first_of_many_with_equals_among_them(data, dtype, axis, largest):
    count = data.draw(st.integers(1, SHAPE[axis]))
    flat = data.draw(st.lists(st.integers(0, 4), min_size=prod(SHAPE), max_size=prod(SHAPE)))
    x = np.array(flat).astype(dtype).reshape(SHAPE)
    for places in (False, True):
        node = ops.TopK(**DATA, axis=axis, count=count, largest=largest, places=places)
        exact(node, x)


@settings(max_examples=12, deadline=None)
@given(
    dtype=DTYPES,
    axis=st.integers(0, 2),
    reverse=st.booleans(),
    exclusive=st.booleans(),
    function=st.sampled_from(["sum", "prod"]),
)
def test_running_totals_of_any_data(dtype, axis, reverse, exclusive, function):
    x = np.random.default_rng(axis).integers(0, 5, SHAPE).astype(dtype)
    exact(
        ops.Cumulate(**DATA, function=function, axis=axis, exclusive=exclusive, reverse=reverse), x
    )


@pytest.mark.parametrize("shape", [(1000,), (4, 1000, 3)])
def test_the_work_grows_with_the_data_alone(shape):
    axis, size = len(shape) // 2, prod(shape)
    total, _ = kernel(ops.Cumulate(**DATA, function="sum", axis=axis), shape, "float32")
    assert steps(total.body) <= 3 * size
    count = 5
    top, _ = kernel(ops.TopK(**DATA, axis=axis, count=count), shape, "float32")
    assert steps(top.body) <= 4 * size * count


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("function", ["sum", "prod"])
def test_running_totals(function, exclusive, reverse):
    node = ops.Cumulate(
        **NAMES, data="x", function=function, axis=1, exclusive=exclusive, reverse=reverse
    )
    check(node, numbers("float64", (2, 5)))


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_the_best_in_order(largest, places):
    node = ops.TopK(**NAMES, data="x", axis=1, count=4, largest=largest, places=places)
    x = numbers("uint64", (2, 9, 2), 0, 5)  # some are equal
    check(node, x, dtype="int64" if places else "uint64")
    with pytest.raises(GraphError, match="expected 1 to 3 elements of axis 1, found 4"):
        node.result_shape([(2, 3, 2)])
