"""ONNX's sequences and optional values: tensors that are meant while the file is read."""

from __future__ import annotations

import numpy as np
import pytest
from control_models import TURN, body, checked, imported, kinds, model, op
from onnx import TensorProto, helper

from vdla.compiler.frontend import ModelError
from vdla.compiler.graph import ops
from vdla.runtime.values import Each, Listed

F = np.float32
X = {"x": np.array([[1, 2, 3], [-4, 5, 6]], F), "v": np.array([7, 8, 9], F)}
PAIR = op("SequenceConstruct", "v x", "l")
KEPT = op("Identity", "go", "go2")


def test_lists_are_no_nodes():
    nodes = [
        op("SequenceEmpty", "", "none"), op("SequenceInsert", "none v", "a"),
        op("SequenceInsert", "a x zero", "b"), op("SequenceInsert", "b v minus", "c"),
        op("SequenceErase", "c zero", "d"), op("SequenceLength", "c", "n"),
        op("SequenceAt", "c minus", "last"),
    ]  # fmt: skip
    places = {"zero": np.array(0), "minus": np.array(-1)}
    graph = checked(model(nodes, X, ["l c", "l d", "i n", "f last"], **places), X)
    assert not set(kinds(graph)) - {"Reshape"}
    assert graph.values["c"] == Listed(("x", "v", "v"))
    assert graph.constants["n"] == 3


@pytest.mark.parametrize(("operator", "place"), [
    ("SequenceAt", 2), ("SequenceAt", -3), ("SequenceErase", 2), ("SequenceInsert", 3),
])  # fmt: skip
def test_a_place_out_of_a_sequence(operator, place):
    node = op(operator, "l v k" if operator == "SequenceInsert" else "l k", "y")
    output = "f y" if operator == "SequenceAt" else "l y"
    last = 2 if operator == "SequenceInsert" else 1
    expected = rf"^m: node y \({operator}\): expected a place from -2 to {last}, found {place}$"
    with pytest.raises(ModelError, match=expected):
        imported(model([PAIR, node], X, [output], k=np.array(place)))


def test_an_element_that_a_run_says():
    nodes = [op("SequenceConstruct", "v v w", "l"), op("SequenceAt", "l k", "y")]
    inputs = {**X, "w": -X["v"], "k": np.array(2)}
    graph = checked(model(nodes, inputs, ["f y"]), inputs, {**inputs, "k": np.array(0)})
    assert kinds(graph)[-1] == "Gather"


def test_an_element_of_several_types_that_a_run_says():
    inputs = {**X, "k": np.array(1)}
    expected = "expected elements of one type, of which a run takes one, found 2"
    with pytest.raises(ModelError, match=expected):
        imported(model([PAIR, op("SequenceAt", "l k", "y")], inputs, ["f y"]))


@pytest.mark.parametrize("keeps", [0, 1])
def test_parts_along_an_axis(keeps):
    node = op("SplitToSequence", "x", "l", axis=-1, keepdims=keeps)
    graph = checked(model([node, op("ConcatFromSequence", "l", "y", axis=-1, new_axis=1 - keeps)],
                          X, ["l l", "f y"]), X)  # fmt: skip
    assert len(graph.values["l"].values) == 3


@pytest.mark.parametrize("sizes", [np.array(2), np.array([1, 2])])
def test_parts_of_sizes(sizes):
    node = op("SplitToSequence", "x k", "l", axis=1)
    graph = checked(model([node], X, ["l l"], k=sizes), X)
    assert [graph.tensors[name].shape[1] for name in graph.values["l"].values] == sorted(
        [2, 1], reverse=sizes.ndim == 0
    )


def test_a_map():
    step = body([op("Mul", "e s", "o")], [("f e", None), ("f s", None)], [("f o", None)])
    nodes = [PAIR, op("SequenceMap", "l v", "y", body=step)]
    assert kinds(checked(model(nodes, X, ["l y"]), X)) == ["Binary", "Binary"]


def grown(trips, inputs, outputs, *more, **constants):
    """A model with a list to which each turn appends x * i."""
    step = body(
        [KEPT, op("Cast", "i", "f", to=TensorProto.FLOAT), op("Mul", "v f", "e"),
         op("SequenceInsert", "s e", "t")],
        (*TURN, ("l s", None)), (("b go2", []), ("l t", None)),
    )  # fmt: skip
    loop = op("Loop", f"{trips} - none", "l", body=step)
    return model([op("SequenceEmpty", "", "none"), loop, *more], inputs, outputs, **constants)


def test_a_list_that_grows_in_known_turns():
    graph = checked(grown("n", X, ["l l"], n=np.array(3)), X)
    assert kinds(graph) == ["Binary"] * 3
    assert len(graph.values["l"].values) == 3


def test_a_list_that_grows_as_often_as_a_run_says():
    samples = [{**X, "n": np.array(count)} for count in (0, 1, 3)]
    more = [op("SequenceLength", "l", "k")]
    graph = checked(grown("n", samples[0], ["l l", "i k"], *more), *samples)
    assert len(graph.of(ops.While)) == 1
    ((each,),) = [graph.values["l"].values]
    assert isinstance(each, Each)


@pytest.mark.parametrize("new", [0, 1])
def test_a_list_that_grew_as_one_tensor(new):
    more = [op("ConcatFromSequence", "l", "y", axis=0, new_axis=new)]
    samples = [{**X, "n": np.array(count)} for count in (1, 3)]
    checked(grown("n", samples[0], ["f y"], *more), *samples)


def test_a_list_of_unknown_length():
    more = [op("SequenceAt", "l zero", "y")]
    expected = (r"^m: node y \(SequenceAt\): expected a sequence of a length that is known while "
                r"the file is read, found l$")  # fmt: skip
    with pytest.raises(ModelError, match=expected):
        imported(grown("n", {**X, "n": np.array(2)}, ["f y"], *more, zero=np.array(0)))


def test_a_loop_that_reads_a_list():
    """Its turns stand one behind another, where their number is known."""
    step = body([KEPT, op("SequenceAt", "l i", "e"), op("Add", "s e", "t")],
                (*TURN, ("f s", None)), (("b go2", []), ("f t", None)))  # fmt: skip
    nodes = [op("SequenceConstruct", "v v", "l"), op("Loop", "n - v", "y", body=step)]
    assert kinds(checked(model(nodes, X, ["f y"], n=np.array(2)), X))[:2] == ["Add", "Add"]


def test_an_input_that_is_a_sequence():
    inputs = {"l": [X["v"], X["v"]]}
    proto = model([op("SequenceAt", "l k", "y")], inputs, ["f y"], k=np.array(1))
    checked(proto, inputs, shapes={"l": [[3], [3]]})
    expected = (r"^m: input l: expected shapes of a sequence's elements, found none; give them: "
                r"--shape 'l=D0,D1;D0,D1'$")  # fmt: skip
    with pytest.raises(ModelError, match=expected):
        imported(proto)


def test_optional_values():
    nodes = [op("Optional", "v", "o"), op("OptionalHasElement", "o", "has"),
             op("OptionalGetElement", "o", "y")]  # fmt: skip
    graph = checked(model(nodes, X, ["b has", "f y"]), X)
    assert graph.constants["has"]


def test_an_optional_value_that_is_not_there():
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [3])
    nodes = [op("Optional", "", "o", type=kind), op("OptionalGetElement", "o", "y")]
    expected = r"^m: node y \(OptionalGetElement\): expected a value that is there, found none$"
    with pytest.raises(ModelError, match=expected):
        imported(model(nodes, X, ["f y"]))
    assert not imported(model([nodes[0], op("OptionalHasElement", "o", "y")], X, ["b y"])).nodes


def test_a_list_that_holds_rows_of_open_length():
    step = body([KEPT, op("Add", "s s", "t"), op("Identity", "t", "r")], (*TURN, ("f s", None)),
                (("b go2", []), ("f t", None), ("f r", [3])))  # fmt: skip
    nodes = [op("Loop", "n - v", "y rows", body=step), op("SequenceConstruct", "rows x", "l")]
    inputs = {**X, "n": np.array(2)}
    checked(model(nodes, inputs, ["l l"]), inputs, {**inputs, "n": np.array(3)})


@pytest.mark.parametrize("inside", ["SequenceLength", "ConcatFromSequence"])
def test_a_list_that_grew_is_captured(inside):
    """A branch reads its rows and their number."""
    last = [op("SequenceLength", "l", "r")]
    if inside == "ConcatFromSequence":
        last = [op("ConcatFromSequence", "l", "a", axis=0), op("ReduceSum", "a", "r", keepdims=0)]
    kind = "i" if inside == "SequenceLength" else "f"
    graphs = [body(nodes, (), [(f"{kind} r", [])]) for nodes in (last, [op("Identity", "z", "r")])]
    more = op("If", "c", "y", then_branch=graphs[0], else_branch=graphs[1])
    z = np.array(5) if kind == "i" else np.array(5, F)
    samples = [{**X, "n": np.array(2), "c": np.array(holds), "z": z} for holds in (True, False)]
    checked(grown("n", samples[0], [f"{kind} y"], more), *samples)


def test_an_element_of_open_length_that_a_run_says():
    nodes = [op("NonZero", "v", "z"), op("Cast", "z", "r", to=TensorProto.FLOAT),
             op("SequenceConstruct", "r r", "l"), op("SequenceAt", "l k", "y")]  # fmt: skip
    inputs = {**X, "k": np.array(1)}
    expected = r"^m: node y \(SequenceAt\): expected tensors of static shape, found r, whose size "
    with pytest.raises(ModelError, match=expected):
        imported(model(nodes, inputs, ["f y"]))
