"""Functions of a graph's nodes: which ones are one, which constants are, and the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from floats import Net
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor import node_functions
from vdla.compiler.targets.processor.target import ProcessorTarget
from vdla.compiler.targets.target import place
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

PAPER = load_config("paper")
HIDDEN = 24


@pytest.fixture
def built(monkeypatch):
    """The names of the nodes whose functions were built."""
    names, build = [], node_functions.node_function

    def node_function(node, *args):
        names.append(node.name)
        return build(node, *args)

    monkeypatch.setattr(node_functions, "node_function", node_function)
    return names


def functions(graph):
    return node_functions.node_functions(graph, place(graph, [ProcessorTarget(alone=True)]))


def check(graph):
    """Compiled for the processor, it computes what the reference does."""
    x = np.random.default_rng(0).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    want = evaluate(graph, {"x": x})
    found = Executor(compile_graph(graph, PAPER, Options(device="cpu"))).run({"x": x}).outputs
    for name in graph.outputs:
        np.testing.assert_allclose(found[name], want[name], rtol=1e-4, atol=1e-5)


def named(net, name):
    """Gives the last node another name than its tensor's."""
    net.nodes[-1] = replace(net.nodes[-1], name=name)


# One form ---------------------------------------------------------------------------------------


def test_steps_of_one_form_are_built_once(built):
    net, y = Net(4, 8), "x"
    weight = net.constant(8, 8)
    for _ in range(5):
        y = net.unary("tanh", net.add(ops.MatMul, a=y, b=weight))
    graph = net.graph(y)
    found = functions(graph)
    assert built == ["t0", "t1"]
    assert len({id(each.func) for each in found.values()}) == 2
    for node in graph.nodes:
        assert found[node.name].args[-1] == node.output
        assert set(graph.activations(node)) <= set(found[node.name].args)
        assert (
            found[node.name].constants.keys() == found[built[node.op == "Unary"]].constants.keys()
        )
    check(graph)


def test_operands_that_change_places_are_one_form_and_one_operand_twice_is_another(built):
    net = Net(4, 8)
    a, b = net.unary("tanh", "x"), net.unary("exp", "x")
    results = [net.binary("sub", *pair) for pair in ((a, b), (b, a), (a, a), (b, b), (a, "x"))]
    graph = net.graph(*results)
    found = functions(graph)
    assert built == [a, b, results[0], results[2]]
    assert [found[name].args for name in results] == [
        (a, b, results[0]), (b, a, results[1]), (a, a, results[2]),
        (b, b, results[3]),
        (a, "x", results[4]),
    ]  # fmt: skip
    check(graph)


def test_nodes_that_differ_in_a_constant_alone_read_their_own(built):
    net = Net(4, 8)
    results = [net.binary("mul", "x", net.constant(8)) for _ in range(3)]
    graph = net.graph(*results)
    found = functions(graph)
    assert built == results
    assert [found[name].args for name in results] == [
        ("x", f"c{n}", name) for n, name in enumerate(results)
    ]
    check(graph)


def test_products_with_weights_of_their_own_keep_them(built):
    net = Net(1, 8, 6, 6)
    results = [
        net.add(ops.Conv2d, data="x", weight=net.constant(16, 8, 3, 3), bias=net.constant(16))
        for _ in range(3)
    ]
    graph = net.graph(*results)
    found = functions(graph)
    assert built == results
    names = [name for each in found.values() for name in each.constants]
    assert len(names) == len(set(names))
    check(graph)


@pytest.mark.parametrize("kind", ["a setting", "a shape", "a type"])
def test_what_differs_otherwise_is_built_apart(kind, built):
    net = Net(4, 8)
    if kind == "a setting":
        results = [net.add(ops.Clip, data="x", low=low, high=1.0) for low in (-1.0, 0.0)]
    elif kind == "a shape":
        whole = net.add(ops.Reduce, data="x", function="sum", axes=(1,))
        results = [net.unary("tanh", whole), net.unary("tanh", "x")]
    else:
        results = [
            net.add(ops.Cast, data=net.add(ops.Cast, data="x", dtype=dtype))
            for dtype in ("int32", "int8")
        ]
    graph = net.graph(*results)
    functions(graph)
    assert built == [node.name for node in graph.nodes]
    check(graph)


@settings(max_examples=8)
@given(data=st.data())
def test_any_graph_of_few_forms(data):
    net, names = Net(6, 8, seed=4), ["x"]
    weights = [net.constant(8, 8) for _ in range(2)]
    net.constants["c2"], net.tensors["c2"] = net.constants["c0"].copy(), net.tensors["c0"]
    rows = [net.constant(8) for _ in range(2)]
    for _ in range(data.draw(st.integers(3, 9))):
        a, b = (data.draw(st.sampled_from(names)) for _ in range(2))
        kind = data.draw(st.sampled_from(["tanh", "sub", "row", "product"]))
        if kind == "tanh":
            names.append(net.unary("tanh", a))
        elif kind == "sub":
            names.append(net.binary("sub", a, b))
        elif kind == "row":
            names.append(net.binary("sub", a, data.draw(st.sampled_from(rows))))
        else:
            weight = data.draw(st.sampled_from([*weights, "c2"]))
            product = net.add(ops.MatMul, a=a, b=weight)
            names.append(net.unary("tanh", product))
    check(net.graph(*names[-2:] if len(names) > 2 else names[-1:]))


# Constants --------------------------------------------------------------------------------------


def twins(same):
    """Two convolutions with weights of different names, which are equal or not."""
    net = Net(1, 8, 6, 6)
    weights = [net.constant(16, 8, 3, 3) for _ in range(2)]
    if same:
        net.constants[weights[1]] = net.constants[weights[0]].copy()
    return net.graph(*(net.add(ops.Conv2d, data="x", weight=weight) for weight in weights))


def test_equal_constants_are_stored_once():
    graphs = [twins(same) for same in (True, False)]
    equal, other = ([*functions(graph).values()] for graph in graphs)
    assert equal[0].constants.keys() == equal[1].constants.keys() != set()
    assert equal[0].args[-1] != equal[1].args[-1]
    weights = [{name for name, array in each.constants.items() if array.any()} for each in other]
    assert weights[0]
    assert weights[1]
    assert not weights[0] & weights[1]
    equal, other = (compile_graph(g, PAPER, Options(device="cpu")).constants for g in graphs)
    assert len(equal) < 0.6 * len(other)
    for graph in graphs:
        check(graph)


def test_constants_of_equal_bytes_and_other_shapes_are_two():
    net, found = Net(2, 6), {}
    arrays = [np.arange(6, dtype=np.float32).reshape(shape) for shape in ((6,), (2, 3))]
    arrays.append(arrays[0].view(np.int32))
    graph = net.graph(net.unary("tanh", "x"))
    (function,) = functions(graph).values()
    shared = [
        node_functions._with_shared(replace(function, constants={f"k{n}": array}), found)
        for n, array in enumerate([*arrays, arrays[0].copy()])
    ]
    assert [list(each.constants) for each in shared] == [["k0"], ["k1"], ["k2"], ["k0"]]


def test_own_constants_whose_name_a_weight_has():
    """As exporters name them: the layer ``conv`` has ``conv.weight``, which others may read."""
    net = Net(1, 16, 8, 8)
    net.constants["conv.weight"] = net.rng.standard_normal((16, 16, 1, 1)).astype(np.float32)
    net.tensors["conv.weight"] = replace(net.tensors["x"], shape=(16, 16, 1, 1))
    y = net.add(ops.Conv2d, data="x", weight="conv.weight")
    named(net, "conv")
    mean = net.add(ops.AvgPool, data="x", kernel=(8, 8))
    graph = net.graph(y, net.binary("mul", mean, "conv.weight"))
    assert not functions(graph)["conv"].constants.keys() & graph.tensors.keys()
    check(graph)


def test_symbols_that_others_have_already():
    """Names that are different until they are made symbols."""
    net = Net(3, 4)
    names = ["a_b_2", "a.b", "a_b", "a-b", "a_b_3"]
    results = []
    for name, function in zip(names, ("tanh", "exp", "abs", "sin", "cos"), strict=True):
        results.append(net.unary(function, "x"))
        named(net, name)
    graph = net.graph(*results)
    assert len({each.func.name for each in functions(graph).values()}) == 5
    check(graph)


# Recurrent layers -------------------------------------------------------------------------------


def recurrent(op, count, way="forward", batch=1):
    """A layer of so many shared, and its inputs."""
    rng, gates, sides = np.random.default_rng(3), {"RNN": 1, "GRU": 3, "LSTM": 4}[op], 1
    sides += way == "bidirectional"

    def weights(*shape):
        return (0.4 * rng.standard_normal(shape)).astype(np.float32)

    constants = {
        "w": weights(sides, gates * HIDDEN, 16), "r": weights(sides, gates * HIDDEN, HIDDEN),
        "b": weights(sides, 2 * gates * HIDDEN),
    }  # fmt: skip
    node = helper.make_node(op, ["x", *"wrb"], ["y"], hidden_size=HIDDEN, direction=way)
    shapes = {"x": [count, batch, 16], "y": [count, sides, batch, HIDDEN]}
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()]
    known = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], known)
    opsets = [helper.make_opsetid("", 17)]
    x = rng.standard_normal(shapes["x"]).astype(np.float32)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), {"x": x}


def compiled(proto):
    return compile_graph(import_model(proto, "m"), PAPER, Options(device="cpu"))


@pytest.mark.parametrize(
    ("op", "way", "batch"), [("LSTM", "forward", 1), ("GRU", "bidirectional", 3)]
)
def test_many_steps_have_the_constants_of_one(op, way, batch):
    """Beside the first, which has no state that would be multiplied."""
    proto, x = recurrent(op, 7, way, batch)
    many, two = compiled(proto), compiled(recurrent(op, 2, way, batch)[0])
    assert len(many.constants) <= 1.2 * len(two.constants)
    (want,) = ort_run(proto, x).values()
    (found,) = Executor(many).run(x).outputs.values()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("op", "batch"), [("LSTM", 1), ("GRU", 3)])
def test_more_steps_have_no_more_functions(built, op, batch):
    """They take other rows of the sequence, which are views."""
    counts = []
    for length in (4, 10):
        built.clear()
        module = compiled(recurrent(op, length, batch=batch)[0])
        counts.append((len(built), len(module.host.functions)))
    assert counts[0] == counts[1]
