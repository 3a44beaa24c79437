"""Tensors that are some of another one's bytes: which they are, and where they begin."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from floats import Net
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.ops.views import View
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.views import view_of
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

PAPER = load_config("paper")


def compiled(graph):
    """A module that is seen to compute what the graph says, twice."""
    module = compile_graph(graph, PAPER, Options("cpu"))
    ready, rng = Executor(module, threads=1), np.random.default_rng(1)
    x = {n: rng.standard_normal(graph.tensors[n].shape).astype(np.float32) for n in graph.inputs}
    want = evaluate(graph, x)
    for _ in range(2):
        outputs = ready.run(x).outputs
        for name in graph.outputs:
            # Sums are added in another order, so their error is one of the greatest terms.
            atol = 1e-5 * max(1.0, float(np.abs(want[name]).max()))
            np.testing.assert_allclose(outputs[name], want[name], rtol=1e-5, atol=atol)
    return module


@st.composite
def tables(draw, size):
    """Places along an axis, most often in a row."""
    start = draw(st.integers(0, size - 1))
    row = list(range(start, draw(st.integers(start + 1, size))))
    others = st.lists(st.integers(OUTSIDE, size - 1), min_size=1, max_size=4)
    return draw(st.one_of(st.just(row), st.just(list(range(size))), others))


@given(data=st.data())
def test_a_view_is_one_run_of_elements(data):
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    places = [data.draw(tables(size)) for size in shape]
    net = Net(*shape)
    graph = net.graph(net.take("x", *places))
    (node,) = graph.nodes
    view = view_of(node, graph)
    numbers = np.arange(1, prod(shape) + 1, dtype=np.int64).reshape(shape)
    (kind,) = (graph.tensors[node.output],)
    result = node.evaluate([numbers], kind).ravel()
    start = int(result[0])
    if start and np.array_equal(result, np.arange(start, start + result.size)):
        assert view == View("x", 4 * (start - 1))
    else:
        assert view is None


def test_the_rows_of_a_sequence_take_no_function():
    net = Net(6, 16)
    rows = [net.take("x", [n], range(16)) for n in range(6)]
    halves = [net.take(row, [0], range(n, n + 8)) for row in rows for n in (0, 8)]
    total = halves[0]
    for half in halves[1:]:
        total = net.add(ops.Add, a=net.unary("tanh", total), b=half)
    module = compiled(net.graph(total))
    start = module.tensors["x"].offset
    assert [module.tensors[half].offset - start for half in halves] == list(range(0, 384, 32))
    assert not {step.name for step in module.steps} & {*rows, *halves}


def test_blocks_of_channels_of_one_image():
    net = Net(1, 48, 6, 6)
    y = net.add(ops.Conv2d, data="x", weight=net.constant(48, 48, 1, 1))
    part = net.take(y, [0], range(16, 48), range(6), range(6))
    z = net.add(ops.Conv2d, data=part, weight=net.constant(16, 32, 3, 3))
    module = compiled(net.graph(z))
    assert part not in {step.name for step in module.steps}
    assert module.tensors[part].offset - module.tensors[y].offset == 4 * 16 * 36


def product(net, x):
    """Of a matrix and a square constant."""
    size = net.tensors[x].shape[1]
    return net.add(ops.MatMul, a=x, b=net.constant(size, size))


def test_the_last_reader_of_a_tensor_writes_over_its_rows():
    net = Net(4, 8)
    whole = product(net, "x")
    part = net.take(whole, [1, 2], range(8))
    y = net.unary("tanh", part)
    module = compiled(net.graph(product(net, y)))
    assert module.tensors[y].offset == module.tensors[part].offset
    assert module.tensors[part].offset == module.tensors[whole].offset + 32


@pytest.mark.parametrize("other", [[1], [3]], ids=str)
def test_rows_are_kept_while_others_are_read(other):
    """Bytes of one tensor live as long as any of them is read, whichever they are."""
    net = Net(4, 8)
    whole = product(net, "x")
    part, later = net.take(whole, [1], range(8)), net.take(whole, other, range(8))
    y, z = net.unary("tanh", part), product(net, later)
    module = compiled(net.graph(y, z))
    assert module.tensors[y].offset != module.tensors[part].offset


def test_two_rows_of_a_tensor_are_not_written_over_by_their_sum():
    net = Net(2, 8)
    whole = product(net, "x")
    a, b = (net.take(whole, [n], range(8)) for n in (0, 1))
    y = net.add(ops.Add, a=a, b=b)
    module = compiled(net.graph(product(net, y)))
    assert module.tensors[y].offset not in (module.tensors[a].offset, module.tensors[b].offset)
