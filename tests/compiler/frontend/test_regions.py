"""Graphs inside ONNX's nodes as regions: what they capture, own and give."""

from __future__ import annotations

import numpy as np
import pytest
from control_models import TURN, body, checked, imported, kinds, model, op

from vdla.compiler.frontend import ModelError
from vdla.compiler.graph import ops

F = np.float32
X = {"x": np.array([1, 2, 3], F), "c": np.array(True)}
OTHER = {**X, "c": np.array(False)}


def choice(then, otherwise, inputs, ends=("f r",), **constants):
    """A model of one If with these branches."""
    results = [(end, None) for end in ends]
    graphs = [body(nodes, (), results) for nodes in (then, otherwise)]
    names = " ".join(f"y{n}" for n in range(len(ends)))
    node = op("If", "c", names, then_branch=graphs[0], else_branch=graphs[1])
    return model([node], inputs, [f"f y{n}" for n in range(len(ends))], **constants)


def test_both_branches_capture_what_one_reads():
    inputs = {**X, "z": np.ones(3, F)}
    proto = choice([op("Add", "x z", "r")], [op("Neg", "x", "r")], inputs)
    graph = checked(proto, inputs, {**inputs, "c": OTHER["c"]})
    node = graph.nodes[-1]
    assert {*node.operands[1:]} == {"x", "z"}
    assert [len(region.inputs) for region in node.regions] == [2, 2]


def test_constants_around_a_region_are_its_own():
    proto = choice([op("Add", "x k", "r")], [op("Neg", "x", "r")], X, k=np.full(3, 7, F))
    node = checked(proto, X, OTHER).nodes[-1]
    assert node.operands[1:] == ("x",)
    assert [array.tolist() for array in node.then.constants.values()] == [[7, 7, 7]]
    assert not node.otherwise.constants


def test_quantized_weights_around_a_region_are_integers_in_it():
    weights = {"k": np.array([1, -2, 3], np.int8), "s": F(0.5), "zero": np.int8(0)}
    proto = choice([op("Mul", "x w", "r")], [op("Neg", "x", "r")], X, **weights)
    proto.graph.node.insert(0, op("DequantizeLinear", "k s zero", "w"))
    node = checked(proto, X, OTHER).nodes[-1]
    assert "Dequantize" in kinds(node.then)
    assert node.operands[1:] == ("x",)


def test_each_result_is_a_tensor_of_its_own():
    nodes = [op("Tanh", "x", "r"), op("Identity", "r", "q")]
    proto = choice(nodes, [op("Neg", "x", "r"), op("Abs", "x", "q")], X, ("f r", "f q"))
    node = checked(proto, X, OTHER).nodes[-1]
    assert len({*node.then.outputs}) == 2


def test_what_is_known_around_is_computed_while_reading():
    """A loop of constants is a constant."""
    inner = body([op("Identity", "go", "go2"), op("Add", "s s", "t")], (*TURN, ("f s", None)),
                 (("b go2", []), ("f t", None)))  # fmt: skip
    nodes = [op("Loop", "n - k", "a", body=inner), op("Add", "x a", "y")]
    graph = checked(model(nodes, X, ["f y"], n=np.array(3), k=np.ones(3, F)), X)
    assert kinds(graph) == ["Add"]
    assert [array.tolist() for array in graph.constants.values()] == [[8, 8, 8]]


def test_a_result_that_is_captured():
    proto = choice([op("Identity", "x", "r")], [op("Neg", "x", "r")], X)
    node = checked(proto, X, OTHER).nodes[-1]
    assert not node.then.nodes
    assert node.then.outputs == node.then.inputs


def test_an_operand_that_nothing_writes():
    proto = choice([op("Add", "x nowhere", "r")], [op("Neg", "x", "r")], X)
    with pytest.raises(ModelError, match=r"nowhere") as error:
        imported(proto)
    assert "\n" not in str(error.value)


def test_a_result_whose_size_depends_on_data():
    """Without an if beside it that says the shape, the loop is onnxruntime's."""
    inner = body(
        [op("Identity", "go", "go2"), op("NonZero", "s", "p"),
         op("ReduceSum", "p", "k", keepdims=0),
         op("Cast", "k", "f", to=1), op("Add", "s f", "t"), op("Identity", "p", "r")],
        (*TURN, ("f s", [3])), (("b go2", []), ("f t", [3]), ("i r", None)),
    )  # fmt: skip
    node = op("Loop", "n - x", "y rows", body=inner)
    graph = checked(model([node], X, ["f y", "i rows"], n=np.array(2)), X)
    (made,) = graph.of(ops.Open)
    assert "of static shape" in made.reason


def test_nodes_whose_results_nobody_reads():
    """They could make a region onnxruntime's for nothing."""
    then = [op("NonZero", "x", "p"), op("Neg", "p", "q"), op("Tanh", "x", "r")]
    node = checked(choice(then, [op("Neg", "x", "r")], X), X, OTHER).nodes[-1]
    assert kinds(node.then) == ["Unary"]


def test_a_list_is_nothing_that_onnxruntime_is_given():
    """Branches of two shapes are its, unless one reads a list."""
    then = [op("ConcatFromSequence", "l", "r", axis=0)]
    proto = choice(then, [op("Neg", "x", "r")], X)
    proto.graph.node.insert(0, op("SequenceConstruct", "x x", "l"))
    expected = r"^m: node y0 \(If\): expected a result .* of float32\[6\], found float32\[3\]$"
    with pytest.raises(ModelError, match=expected):
        imported(proto)
