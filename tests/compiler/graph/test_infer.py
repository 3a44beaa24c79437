"""The typing rules and what ``verify`` says about a broken graph."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.types import TENSOR_DTYPES, TensorType

F32, I8 = "float32", "int8"


def graph(*nodes, constants=None, outputs=("y",), **types):
    constants = constants or {}
    tensors = {name: TensorType(tuple(shape), dtype) for name, (dtype, *shape) in types.items()}
    tensors.update({n: TensorType(a.shape, str(a.dtype)) for n, a in constants.items()})
    return Graph(("x",), outputs, nodes, tensors, constants)


def relu(name="r", data="x", output="y"):
    return ops.Relu(name=name, data=data, output=output)


def test_a_good_graph_is_returned():
    g = graph(relu(), x=(F32, 2, 3), y=(F32, 2, 3))
    assert verify(g) is g


@pytest.mark.parametrize(
    ("g", "message"),
    [
        (
            graph(relu(data="z"), x=(F32, 2), y=(F32, 2), z=(F32, 2)),
            "node r (Relu): expected operands defined before their use, found z",
        ),
        (
            graph(relu(), relu("r2", "x", "y"), x=(F32, 2), y=(F32, 2)),
            "node r2 (Relu): expected a tensor written once, found y",
        ),
        (
            graph(relu(), relu("r", "y", "z"), x=(F32, 2), y=(F32, 2), z=(F32, 2)),
            "expected one node called r, found two",
        ),
        (
            graph(relu(), x=(F32, 2), y=(F32, 3)),
            "node r (Relu): expected an output of shape [2], found [3]",
        ),
        (
            graph(relu(), x=(I8, 2), y=(F32, 2)),
            "node r (Relu): expected float32 data, found int8",
        ),
        (
            graph(relu(), x=(F32, 2), y=(I8, 2)),
            "node r (Relu): expected a float32 result, found int8",
        ),
        (
            graph(relu(output="z"), x=(F32, 2), y=(F32, 2), z=(F32, 2)),
            "expected output y to be written by a node, found none",
        ),
        (
            graph(relu(), x=("complex64", 2), y=(F32, 2)),
            f"tensor x: expected one of {', '.join(TENSOR_DTYPES)}, found complex64",
        ),
        (
            graph(relu(), x=(F32, 0), y=(F32, 0)),
            "tensor x: expected positive sizes, found [0]",
        ),
        (
            graph(ops.Reshape(name="r", data="x", output="y"), x=(F32, 6), y=(F32, 2, 2)),
            "node r (Reshape): expected an output of 6 elements, found [2, 2]",
        ),
        (
            graph(
                ops.Transpose(name="t", data="x", output="y", perm=(0, 0)),
                x=(F32, 2, 2),
                y=(F32, 2, 2),
            ),
            "node t (Transpose): expected a permutation of 2 axes, found [0, 0]",
        ),
        (
            graph(
                ops.Concat(name="c", parts=("x", "x"), output="y", axis=2), x=(F32, 2), y=(F32, 4)
            ),
            "node c (Concat): expected an axis below 1, found 2",
        ),
    ],
)
def test_broken_graphs(g, message):
    with pytest.raises(GraphError, match=f"^{re.escape(message)}$"):
        verify(g)


@pytest.mark.parametrize(
    ("nodes", "kinds"),
    [
        ((relu(), relu("s", "y", "z")), {"y": (F32, 2), "z": (F32, 3)}),  # another type
        ((relu(), relu("s", "y", "z")), {"y": (F32, 3), "z": (F32, 2)}),  # of what is read
        ((relu(), relu("s", "x", "z")), {"y": (F32, 2), "z": (F32, 3)}),  # another node
        ((relu(), relu("s", "w", "z")), {"y": (F32, 2), "z": (F32, 2)}),  # another order
    ],
)
def test_what_a_pass_changed_is_checked(nodes, kinds):
    before = verify(graph(relu(), relu("s", "y", "z"), x=(F32, 2), y=(F32, 2), z=(F32, 2)))
    for after in (graph(*nodes, x=(F32, 2), **kinds), graph(*nodes, **kinds, x=(F32, 2))):
        with pytest.raises(GraphError):
            verify(after, before=before)


def test_what_a_pass_kept_is_not_checked_again(monkeypatch):
    before = verify(graph(relu(), x=(F32, 2), y=(F32, 2)))
    monkeypatch.setattr(ops.Relu, "result_shape", lambda *_: pytest.fail("checked again"))
    assert verify(replace(before), before=before) == before
    monkeypatch.undo()


def test_a_constant_must_have_its_declared_type():
    g = graph(relu(data="c"), x=(F32, 2), y=(F32, 2), constants={"c": np.zeros(2, np.float32)})
    g.constants["c"] = np.zeros(3, np.float32)
    with pytest.raises(
        GraphError, match=r"^constant c: expected float32\[2\], found float32\[3\]$"
    ):
        verify(g)


def test_types_know_their_place_in_memory():
    kind = TensorType((2, 20, 3, 5), "int8", block=16)
    assert kind.physical == (2, 2, 3, 5, 16)
    assert kind.nbytes == 2 * 2 * 3 * 5 * 16
    assert TensorType((2, 20), "int8", block=16).physical == (2, 2, 1, 1, 16)
    assert TensorType((2, 20), "float32").nbytes == 160


def test_nodes_know_their_operands():
    node = ops.Conv2d(name="c", data="x", weight="w", output="y")
    assert node.inputs == ("x", "w")
    assert node.renamed({"x": "z"}).inputs == ("z", "w")
    concat = ops.Concat(name="c", parts=("a", "b"), output="y", axis=1)
    assert concat.renamed({"b": "q"}).inputs == ("a", "q")
    assert dict(concat.attributes) == {"axis": 1}
