"""ONNX's Loop: a Scan, a While, turns one behind another, or nothing."""

from __future__ import annotations

import numpy as np
import pytest
from control_models import TURN, body, checked, imported, kinds, model, op, results

from vdla.compiler.frontend import ModelError
from vdla.compiler.graph import ops
from vdla.runtime.errors import InputError

F = np.float32
X = {"x": np.array([1, 2, 3], F)}
N = {"n": np.array(3)}
KEPT = op("Identity", "go", "go2")
GO = ("b go2", [])


def turn(nodes, states="f", rows=(), **constants):
    """A body whose states are called s, s1, …; they become s_2, …"""
    own = [(f"{letter} s{n}", None) for n, letter in enumerate(states)]
    new = [(f"{letter} t{n}", None) for n, letter in enumerate(states)]
    return body(nodes, (*TURN, *own), (GO, *new, *rows), **constants)


def doubled(**more):
    """A Loop that doubles x in each of its turns."""
    nodes = [KEPT, op("Add", "s0 s0", "t0")]
    return op("Loop", more.pop("inputs", "n - x"), "y", body=turn(nodes, **more))


def test_turns_that_are_known_are_a_scan():
    graph = checked(model([doubled()], X, ["f y"], n=np.array(3)), X)
    (scan,) = graph.nodes
    assert isinstance(scan, ops.Scan)
    assert (scan.turns, scan.carried, scan.scanned) == (3, 1, 0)


def test_turns_that_a_run_knows_are_a_while():
    graph = checked(model([doubled()], {**X, **N}, ["f y"]), *({**X, "n": np.array(k)}
                                                              for k in (-1, 0, 1, 5)))  # fmt: skip
    assert kinds(graph).count("While") == 1
    assert "External" not in kinds(graph)


def test_a_condition_that_a_turn_computes_is_a_while():
    nodes = [op("Add", "s0 s0", "t0"), op("ReduceSum", "t0", "sum", keepdims=0),
             op("Less", "sum most", "go2")]  # fmt: skip
    loop = op("Loop", "n - x", "y", body=turn(nodes))
    graph = checked(model([loop], X, ["f y"], n=np.array(9), most=F(50)), X)
    (node,) = graph.of(ops.While)
    assert node.turns == 9


def test_a_first_condition_that_an_input_is():
    proto = model([doubled(inputs="n c x")], {**X, "c": np.array(True)}, ["f y"], n=np.array(3))
    graph = checked(proto, *({**X, "c": np.array(holds)} for holds in (True, False)))
    assert len(graph.of(ops.While)) == 1


@pytest.mark.parametrize("shape", [(), (1,)])
def test_numbers_of_one_element(shape):
    """The number of turns may be a vector of one."""
    given = {"n": np.full(shape, 2), "c": np.array(True)}
    graph = checked(model([doubled(inputs="n c x")], X, ["f y"], **given), X)
    assert kinds(graph) == ["Scan"]


@pytest.mark.parametrize("given", [{"n": np.array(0)}, {"n": np.array(-2)}])
def test_no_turns_are_no_nodes(given):
    graph = checked(model([doubled(), op("Abs", "y", "z")], X, ["f z"], **given), X)
    assert kinds(graph) == ["Unary"]


def test_no_turns_stack_no_rows():
    nodes = [KEPT, op("Add", "s0 s0", "t0"), op("Identity", "t0", "r")]
    loop = op("Loop", "n - x", "y rows", body=turn(nodes, rows=[("f r", [3])]))
    graph = checked(model([loop], X, ["f y", "f rows"], n=np.array(0)), X)
    assert graph.constants["rows"].shape == (0, 3)


def test_a_first_condition_that_is_false():
    proto = model([doubled(inputs="n c x")], X, ["f y"], n=np.array(4), c=np.array(False))
    assert not checked(proto, X).of(ops.Loop)


def test_rows_of_known_turns_are_a_tensor():
    nodes = [KEPT, op("Add", "s0 s0", "t0"), op("Mul", "t0 s0", "r")]
    loop = op("Loop", "n - x", "y rows", body=turn(nodes, rows=[("f r", [3])]))
    graph = checked(model([loop], X, ["f y", "f rows"], n=np.array(3)), X)
    assert graph.tensors["rows"].shape == (3, 3)
    assert not graph.values


def test_rows_of_turns_that_a_run_knows_are_open():
    """The output is the first rows of a tensor that has as many as there may be."""
    nodes = [op("Add", "s0 s0", "t0"), op("Identity", "t0", "r"), op("Less", "i last", "go2")]
    rows = turn(nodes, rows=[("f r", [3])])
    inputs = {**X, "last": np.array(2)}
    proto = model([op("Loop", "n - x", "y rows", body=rows)], inputs, ["f y", "f rows"],
                  n=np.array(5))  # fmt: skip
    graph = checked(proto, *({**X, "last": np.array(k)} for k in (0, 2, 9)))
    assert kinds(graph)[-1] == "While"
    assert graph.values["rows"].tensor in graph.tensors


def test_what_is_passed_on_and_swapped():
    nodes = [KEPT, op("Identity", "s1", "t0"), op("Identity", "s0", "t1")]
    loop = op("Loop", "n - x z", "y w", body=turn(nodes, "ff"))
    inputs = {**X, "z": np.array([[4, 5, 6]], F)[0]}
    for count in (2, 3):
        graph = checked(model([loop], inputs, ["f y", "f w"], n=np.array(count)), inputs)
        assert kinds(graph) == ["Scan"]


def test_states_that_grow_are_turns_behind_one_another():
    nodes = [KEPT, op("Concat", "s0 x", "t0", axis=0)]
    loop = op("Loop", "n - none", "y", body=turn(nodes))
    graph = checked(model([loop], X, ["f y"], n=np.array(3), none=np.zeros(0, F)), X)
    assert not graph.of(ops.Loop)
    assert graph.tensors["y"].shape == (9,)


def test_turns_behind_one_another_end_where_they_say():
    nodes = [op("Concat", "s0 x", "t0", axis=0), op("Less", "i one", "go2")]
    loop = op("Loop", "n - none", "y", body=turn(nodes))
    constants = {"n": np.array(9), "none": np.zeros(0, F), "one": np.array(1)}
    graph = checked(model([loop], X, ["f y"], **constants), X)
    assert graph.tensors["y"].shape == (6,)


def test_windows_stay_in_a_loop():
    nodes = [
        KEPT, op("Add", "i two", "end"), op("Reshape", "i one", "a"), op("Reshape", "end one", "b"),
        op("Slice", "x a b zero", "part"), op("ReduceSum", "part zero", "sum", keepdims=0),
        op("Add", "s0 sum", "t0"),
    ]  # fmt: skip
    constants = {"two": np.array(2), "one": np.array([1]), "zero": np.array([0])}
    inputs = {"x": np.arange(6, dtype=F), "h": np.array(0, F)}
    loop = op("Loop", "n - h", "y", body=turn(nodes))
    graph = checked(model([loop], inputs, ["f y"], n=np.array(4), **constants), inputs)
    assert kinds(graph) == ["Scan"]
    assert "Gather" in kinds(graph.nodes[0].body)


def test_a_loop_without_an_end():
    proto = model([doubled(inputs="- - x")], X, ["f y"])
    expected = ("m: node y (Loop): expected a number of turns, or a condition that ends it, "
                "found neither")  # fmt: skip
    with pytest.raises(ModelError, match=r"^" + expected.replace("(", r"\(").replace(")", r"\)")):
        imported(proto)


def test_states_that_grow_as_often_as_a_run_says():
    """They are onnxruntime's, and the result has the size that it gives."""
    nodes = [KEPT, op("Concat", "s0 s0", "t0", axis=0)]
    loop = op("Loop", "n - x", "y", body=turn(nodes))
    graph = checked(model([loop], {**X, **N}, ["f y"]), {**X, **N})
    (node,) = graph.of(ops.Open)
    assert "expected states of one type in each turn, found float32[3]" in node.reason


def test_loops_inside_one_another_capture_over_levels():
    inner = body(
        [op("Identity", "go_", "go3"), op("Add", "u x", "u2")],
        (("i j", []), ("b go_", []), ("f u", None)), (("b go3", []), ("f u2", None)),
    )  # fmt: skip
    nodes = [KEPT, op("Loop", "n - s0", "t0", body=inner)]
    graph = checked(model([op("Loop", "n - x", "y", body=turn(nodes))], X, ["f y"], n=np.array(2)),
                    X)  # fmt: skip
    (outer,) = graph.nodes
    assert kinds(outer.body) == ["Scan"]


def test_a_loop_that_goes_on():
    """One without a number of turns is stopped behind as many as the front end allows."""
    nodes = [op("Add", "s0 s0", "t0"), op("Less", "i last", "go2")]
    inputs = {**X, "last": np.array(2)}
    graph = imported(model([op("Loop", "- - x", "y", body=turn(nodes))], inputs, ["f y"]))
    (node,) = graph.of(ops.While)
    assert results(graph, inputs)["y"].tolist() == [8, 16, 24]
    expected = rf"^loop .*: expected an end after at most {node.turns:,} turns, found none; [^\n]+$"
    with pytest.raises(InputError, match=expected):
        results(graph, {**X, "last": np.array(node.turns + 5)})
