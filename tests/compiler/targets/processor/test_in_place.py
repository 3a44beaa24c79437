"""Functions that write over an operand: where they may, and that nothing else is lost."""

from __future__ import annotations

import numpy as np
import pytest
from floats import Net

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

PAPER = load_config("paper")
IMAGE = (1, 32, 8, 8)


def convolution(net, x, residual=None):
    """[1, 32, 8, 8], with what is added."""
    found = net.add(ops.Conv2d, data=x, weight=net.constant(32, 32, 3, 3), pads=(1, 1, 1, 1))
    return net.add(ops.Add, a=found, b=residual) if residual else found


def shared(graph):
    """A graph compiled, and seen to compute what it says, twice; and for each node its function's
    name and how many operands that has besides its result."""
    module = compile_graph(graph, PAPER, Options("cpu"))
    ready = Executor(module, threads=1)
    data = {
        n: np.random.default_rng(1).standard_normal(graph.tensors[n].shape).astype(np.float32)
        for n in graph.inputs
    }
    want = evaluate(graph, data)
    for _ in range(2):
        found = ready.run(data).outputs
        for name in graph.outputs:
            most = np.abs(want[name]).max()
            np.testing.assert_allclose(found[name], want[name], rtol=1e-5, atol=1e-5 * most)
    return module, {step.name: (step.function, len(step.args) - 1) for step in module.steps}


def offsets(module, *names):
    """Whether tensors have the same bytes."""
    found = {module.tensors[name].offset for name in names}
    return len(found) == 1


def test_a_residual_is_written_over():
    net = Net(*IMAGE)
    a = convolution(net, "x")
    b = convolution(net, a)
    y = convolution(net, b, a)
    z = net.add(ops.MaxPool, data=y, kernel=(2, 2), strides=(2, 2))
    module, places = shared(net.graph(z))
    assert offsets(module, a, y)
    assert not offsets(module, a, b)
    function, operands = places["t2"]  # the convolution, and what is added to it
    assert function.endswith("_over3")
    assert operands == 3  # b, weights and start: the residual is the result


def test_what_is_read_later_is_kept():
    net = Net(*IMAGE)
    a = convolution(net, "x")
    b = convolution(net, a)
    y = convolution(net, b, a)
    z = convolution(net, y, a)  # reads a again: this one may write over it
    module, _ = shared(net.graph(net.add(ops.MaxPool, data=z, kernel=(2, 2), strides=(2, 2))))
    assert not offsets(module, a, y)
    assert offsets(module, a, z) or offsets(module, y, z)


def product(net, x):
    """By a square matrix."""
    size = net.tensors[x].shape[-1]
    return net.add(ops.MatMul, a=x, b=net.constant(size, size))


def test_results_are_kept():
    net = Net(4, 6)
    a = product(net, "x")
    y = net.binary("add", product(net, product(net, a)), a)
    _, places = shared(net.graph(a, y))
    assert not any("_over" in function for function, _ in places.values())


def test_inputs_are_written_over_and_come_again():
    net = Net(4, 6)
    y = net.unary("exp", "x")
    module, places = shared(net.graph(y))
    assert offsets(module, "x", y)
    assert places["t0"] == ("host_t0_over0", 0)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (ops.Softmax, {"data": "x", "axis": 1}),  # a row is read for its sum, before it is written
        (ops.Transpose, {"data": "x", "perm": (1, 0)}),
        (ops.Concat, {"parts": ("x", "x"), "axis": 0}),
        (ops.Reduce, {"data": "x", "function": "sum", "axes": (1,)}),
    ],
)
def test_what_is_read_elsewhere_is_kept(kind, fields):
    net = Net(6, 6)
    y = net.add(kind, **fields)
    module, _ = shared(net.graph(y))
    assert not offsets(module, "x", y)


def test_views_of_what_is_written_over():
    net = Net(4, 6)
    a = product(net, "x")
    flat = net.add(ops.Reshape, data=a, shape=(24,))
    b = net.unary("tanh", flat)
    back = net.add(ops.Reshape, data=b, shape=(2, 12))
    y = product(net, back)
    module, _ = shared(net.graph(y))
    assert offsets(module, a, flat, b, back)
    assert not offsets(module, back, y)


def test_a_view_that_is_read_later_keeps_its_bytes():
    net = Net(4, 6)
    a = product(net, "x")
    flat = net.add(ops.Reshape, data=a, shape=(2, 12))
    b = net.unary("tanh", a)
    c = product(net, flat)
    module, _ = shared(net.graph(b, c))
    assert offsets(module, a, flat)
    assert not offsets(module, a, b)


def test_one_function_serves_both_ways():
    net = Net(4, 6)
    a = product(net, "x")
    first = net.unary("tanh", net.add(ops.Reshape, data=a, shape=(24,)))
    b = product(net, a)
    second = net.unary("tanh", net.add(ops.Reshape, data=b, shape=(24,)))
    module, places = shared(net.graph(first, second))
    assert places[first] == ("host_t2", 1)  # a is read again
    assert places[second] == ("host_t2_over0", 0)
    assert offsets(module, b, second)


def test_memory_is_reported():
    net = Net(4, 6)
    a = product(net, "x")
    y = net.binary("add", product(net, product(net, a)), a)
    module, _ = shared(net.graph(product(net, y)))
    aligned = 128  # 96 bytes
    memory = module.metadata["memory"]
    assert memory["activations"] == 2 * aligned  # two at once, whichever they are
    assert memory["tensors"] == 5 * 96
    assert memory["constants"] == module.tensors["x"].offset - module.tensors["x"].offset % 64


def test_a_residual_that_is_also_an_image_is_kept():
    """Neighbours of an element are read after the element was written."""
    net = Net(1, 32, 28, 28)
    a = convolution(net, "x")
    y = convolution(net, a, a)
    z = net.add(ops.MaxPool, data=y, kernel=(2, 2), strides=(2, 2))
    module, places = shared(net.graph(z))
    assert not offsets(module, a, y)
    assert not any("_over" in function for function, _ in places.values())


def test_a_tensor_in_two_parameters_is_written_over_in_both():
    net = Net(4, 6)
    y = net.binary("add", net.unary("tanh", "x"), "x")
    module, places = shared(net.graph(y))
    assert offsets(module, "x", y)
    ((function, operands),) = places.values()
    assert function.endswith("_over0_1")
    assert operands == 0


def test_a_tensor_that_is_also_read_under_another_shape_is_kept():
    net = Net(6, 6)
    flat = net.add(ops.Reshape, data="x", shape=(4, 9))
    turned = net.add(ops.Transpose, data=flat, perm=(1, 0))
    y = net.binary("add", net.add(ops.Reshape, data=turned, shape=(6, 6)), "x")
    module, _ = shared(net.graph(y))
    assert offsets(module, "x", flat)
    assert not offsets(module, "x", y)
