"""What tests of traced functions share: a function's results by all ways, which must agree."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from vdla.compiler.graph.parser import parse_graph
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.tracing.trees import flatten


def same(actual, expected, rtol=1e-5):
    """Both have one nesting, and its arrays the same shapes, element types and, nearly, values."""
    (leaves, structure), (wanted, nesting) = flatten(actual), flatten(expected)
    assert structure == nesting
    for leaf, other in zip(leaves, wanted, strict=True):
        other = np.asarray(other)
        assert (leaf.shape, leaf.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(leaf, other, rtol=rtol, atol=1e-6)


@pytest.fixture
def by_graph():
    """A check of a function: its graph, interpreted, gives what it gives with numpy's arrays.

    The graph's text reads back as the same text.
    """

    def check(function, *args):
        function = function if hasattr(function, "graph") else vdla.fn(function)
        graph = function.graph(*args)
        text = format_graph(graph)
        assert format_graph(parse_graph(text, beside(graph))) == text
        arrays = [a for a in flatten(args)[0] if isinstance(a, np.ndarray | np.generic)]
        values = evaluate(graph, dict(zip(graph.inputs, map(np.asarray, arrays), strict=True)))
        with np.errstate(all="ignore"):
            expected = function.__wrapped__(*args)
        leaves, structure = flatten(expected)
        same(structure.build([np.asarray(values[name]) for name in graph.outputs]), expected)
        assert len(leaves) == len(graph.outputs)

    return check


@pytest.fixture(params=["cpu", "sim"])
def by_device(request):
    """A check of a function: compiled for a device, it gives what it gives with numpy's arrays."""

    def check(function, *args, returns=None):
        compiled = vdla.fn(returns=returns, device=request.param, config="tiny")(function)
        same(compiled(*args), function(*args))

    return check


@pytest.fixture
def refusal(request):
    """What vdla says of a function of an array; it begins with the place in the test's file."""

    def of(function, array):
        with pytest.raises(vdla.UserError) as error:
            vdla.fn(function).graph(array)
        where, _, rest = str(error.value).partition(": ")
        assert where.startswith(f"{request.path.name}:")
        return rest

    return of
