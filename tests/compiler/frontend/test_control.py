"""ONNX's If and Scan as nodes that hold graphs."""

from __future__ import annotations

import numpy as np
import pytest
from control_models import body, checked, imported, kinds, model, op, results
from onnx import helper

from vdla.compiler.frontend import ModelError
from vdla.compiler.graph import ops
from vdla.runtime.errors import InputError

F = np.float32
X = {"x": np.array([[1, 2, 3], [-4, 5, 6]], F)}
BOTH = [{**X, "c": np.array(holds)} for holds in (True, False)]


def choice(then, otherwise, inputs="c", outputs="y"):
    """An If whose branches are a list of nodes each, with a result r."""
    graphs = (body(nodes, (), [("f r", None)]) for nodes in (then, otherwise))
    names = ("then_branch", "else_branch")
    return op("If", inputs, outputs, **dict(zip(names, graphs, strict=True)))


def test_a_condition_that_a_run_knows():
    nodes = [choice([op("Tanh", "x", "r")], [op("Neg", "x", "a"), op("Abs", "a", "r")])]
    graph = checked(model(nodes, BOTH[0], ["f y"]), *BOTH)
    node = graph.nodes[-1]
    assert isinstance(node, ops.If)
    assert [kinds(region) for region in node.regions] == [["Unary"], ["Unary", "Unary"]]


def test_a_condition_of_one_element():
    nodes = [choice([op("Tanh", "x", "r")], [op("Neg", "x", "r")])]
    inputs = {**X, "c": np.array([False])}
    assert kinds(checked(model(nodes, inputs, ["f y"]), inputs)) == ["Reshape", "If"]


def test_a_condition_that_follows_from_shapes_is_one_branch():
    nodes = [
        op("Shape", "x", "s"), op("Gather", "s one", "w"), op("Greater", "w two", "c"),
        choice([op("Tanh", "x", "r")], [op("Neg", "x", "r")]),
    ]  # fmt: skip
    proto = model(nodes, X, ["f y"], one=np.array(1), two=np.array(2))
    assert kinds(checked(proto, X)) == ["Unary"]


def test_names_may_be_the_same_in_both_branches():
    branches = [[op(kind, "x", "a"), op("Abs", "a", "r")] for kind in ("Tanh", "Neg")]
    checked(model([choice(*branches)], BOTH[0], ["f y"]), *BOTH)


def test_results_that_are_captured_constants_or_one_tensor_twice():
    ends = [("f r", None), ("f k", None), ("f q", None)]
    branches = [
        body([op("Identity", "x", "r"), op("Identity", "r", "q")], (), ends, k=np.ones(2, F)),
        body([op("Neg", "x", "r"), op("Identity", "x", "q")], (), ends, k=np.zeros(2, F)),
    ]
    node = op("If", "c", "y z w", then_branch=branches[0], else_branch=branches[1])
    graph = checked(model([node], BOTH[0], ["f y", "f z", "f w"]), *BOTH)
    assert kinds(graph)[-1] == "If"


def test_branches_of_other_shapes_are_onnxruntimes():
    nodes = [choice([op("Tanh", "x", "r")], [op("ReduceSum", "x", "r", keepdims=0)]),
             op("ReduceSum", "y", "z", keepdims=0)]  # fmt: skip
    graph = checked(model(nodes, BOTH[0], ["f z"]), *BOTH)
    assert kinds(graph) == ["Open"]


def test_branches_of_two_structures():
    one = body([op("Identity", "l", "r")], (), [("l r", None)])
    two = body([op("SequenceInsert", "l x", "r")], (), [("l r", None)])
    nodes = [
        op("SequenceConstruct", "x", "l"), op("If", "c", "y", then_branch=one, else_branch=two)
    ]  # fmt: skip
    expected = r"^m: node y \(If\): expected branches with results of one structure, found others$"
    with pytest.raises(ModelError, match=expected):
        imported(model(nodes, BOTH[0], ["l y"]))


def positive(other):
    """An If of what is above zero, whose number only a run knows, and ``other``."""
    then = [op("Greater", "v zero", "p"), op("Compress", "v p", "r")]
    return choice(then, [op("Identity", other, "r")])


def test_one_branch_whose_size_depends_on_data():
    """It is onnxruntime's, with the other one's shape; a run of another shape stops."""
    inputs = {"v": np.array([1, -1, 2], F), "w": np.array([7, 8], F), "c": np.array(True)}
    proto = model([positive("w"), op("Neg", "y", "z")], inputs, ["f z"], zero=np.array(0, F))
    graph = checked(proto, inputs, {**inputs, "c": np.array(False)})
    node = graph.nodes[-2]
    assert isinstance(node, ops.If)
    assert kinds(node.then)[-1] == "External"
    expected = r"^step .*: expected a result of shape \[2\], found \[3\]$"
    with pytest.raises(InputError, match=expected):
        results(graph, {**inputs, "v": np.array([1, 1, 2], F)})


# Scan -------------------------------------------------------------------------------------------


def cell(state=(2,)):
    """A body that adds an element to its state and gives both."""
    nodes = [op("Add", "h e", "h2"), op("Mul", "h2 e", "o")]
    return body(nodes, [("f h", state), ("f e", state)], [("f h2", state), ("f o", state)])


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("way", [0, 1])
def test_axes_and_directions(axis, way):
    inputs = {**X, "h0": np.array([1, 2], F)}
    node = op("Scan", "h0 x", "h y", body=cell(), num_scan_inputs=1, scan_input_axes=[axis],
              scan_input_directions=[way], scan_output_axes=[axis],
              scan_output_directions=[1 - way])  # fmt: skip
    graph = checked(model([node], inputs, ["f h", "f y"]), inputs)
    (scan,) = graph.of(ops.Scan)
    assert (scan.turns, scan.carried, scan.scanned) == (3, 1, 1)


@pytest.mark.parametrize("way", [0, 1])
def test_a_scan_of_batches(way):
    """In opset 8 there is one for each element of the batch, and directions have another name."""
    inputs = {"h0": np.ones((2, 2), F), "x": np.arange(12, dtype=F).reshape(2, 3, 2)}
    node = op("Scan", "- h0 x", "h y", body=cell(), num_scan_inputs=1, directions=[way])
    graph = checked(model([node], inputs, ["f h", "f y"], opset=8), inputs)
    assert kinds(graph).count("Scan") == 2


def test_lengths_of_sequences_are_refused():
    inputs = {"n": np.array([1, 3]), "h0": np.ones((2, 2), F), "x": np.ones((2, 3, 2), F)}
    node = op("Scan", "n h0 x", "h y", body=cell(), num_scan_inputs=1)
    graph = imported(model([node], inputs, ["f h", "f y"], opset=8))
    assert not graph.of(ops.Scan)
    assert "expected sequences of one length, found sequence_lens" in graph.nodes[-1].reason


def test_a_function_with_a_choice_inside():
    nodes = [op("ReduceSum", "a", "s", keepdims=0), op("Greater", "s zero", "c"),
             choice([op("Tanh", "a", "r")], [op("Neg", "a", "r")], outputs="b")]  # fmt: skip
    nodes.insert(0, helper.make_node("Constant", [], ["zero"], value_float=0.0))
    own = helper.make_function("own", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", 18)])
    proto = model([op("f", "x", "y", domain="own")], X, ["f y"])
    proto.functions.append(own)
    proto.opset_import.append(helper.make_opsetid("own", 1))
    checked(proto, X, {"x": -X["x"]})
