"""Chains of moves as one: which chains become what, and that no element goes elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.passes.move import fold_moves
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType

N, C, H, W = SHAPE = (2, 12, 4, 6)


def chain(*steps, shape=SHAPE) -> Graph:
    """Reshapes, given as shapes, and transpositions, given as strings of axes."""
    tensors = {"x": TensorType(shape, "int8")}
    nodes, name = [], "x"
    for number, step in enumerate(steps):
        output = "y" if number == len(steps) - 1 else f"t{number}"
        if isinstance(step, str):
            perm = tuple(map(int, step))
            nodes.append(ops.QTranspose(name=f"n{number}", output=output, data=name, perm=perm))
            shape = tuple(shape[axis] for axis in perm)
        else:
            nodes.append(ops.QReshape(name=f"n{number}", output=output, data=name))
            shape = step
        tensors[output] = TensorType(shape, "int8")
        name = output
    return Graph(("x",), ("y",), tuple(nodes), tensors)


def kinds(graph: Graph) -> list[str]:
    return [node.op for node in graph.nodes]


def same(before: Graph, after: Graph) -> bool:
    verify(after)
    x = np.random.default_rng(0).integers(-128, 128, before.tensors["x"].shape, np.int8)
    return np.array_equal(evaluate(before, {"x": x})["y"], evaluate(after, {"x": x})["y"])


def test_a_channel_shuffle_takes_channels():
    graph = chain((N, 3, 4, H, W), "02134", SHAPE)
    after = fold_moves(graph)
    assert kinds(after) == ["QTake"]
    assert after.nodes[0].tables()[1] == tuple(np.arange(12).reshape(3, 4).T.ravel())
    assert same(graph, after)


@pytest.mark.parametrize(
    ("split", "axes"), [((N, 2, 2, 3, H, W), "034152"), ((N, 3, 2, 2, H, W), "014253")]
)
def test_depth_to_space_is_images_that_take_turns(split, axes):
    """ONNX's modes DCR and CRD."""
    graph = chain(split, axes, (N, 3, 2 * H, 2 * W))
    after = fold_moves(graph)
    assert kinds(after) == ["QTake"] * 4 + ["QInterleave"]
    assert same(graph, after)


def test_what_is_no_move_of_channels_rows_or_columns_stays():
    for graph in (
        chain("0132"),  # rows for columns: alone
        chain("0132", "0123"),
        chain((N, C, H * W), (N, C, W, H)),
        chain((N, C * H, W), (N, C * H // 2, 1, 2 * W)),
    ):
        assert fold_moves(graph) is graph


def test_only_images_are_followed():
    graph = chain((C, H * W), "10", shape=(C, H, W))
    assert fold_moves(graph) is graph


def test_others_keep_what_they_read():
    graph = chain((N, 3, 4, H, W), "02134", SHAPE)
    graph.outputs = ("y", "t1")
    after = fold_moves(graph)
    assert sorted(kinds(after)) == ["QReshape", "QTake", "QTranspose"]
    assert same(graph, after)


@settings(max_examples=60)
@given(
    st.lists(st.integers(-1, N - 1), min_size=4, max_size=4),
    st.sampled_from(["channels", "rows"]),
)
def test_images_from_anywhere_become_channels_or_rows(places, how):
    """Of images in any order, some of them fill, two become one."""
    tables = [places, *map(range, SHAPE[1:])]
    node = ops.QTake(
        name="take", output="t", data="x", shape=(4, C, H, W),
        places=tuple(i for table in tables for i in table), fill=7,
    )  # fmt: skip
    shape = (4, C, H, W)
    if how == "channels":
        rest = chain((2, 2, C, H, W), (2, 2 * C, H, W), shape=shape)
    else:
        rest = chain((2, 2, C, H, W), "02314", (2, C, 2 * H, W), shape=shape)
    first = rest.nodes[0]
    nodes = (node, first.renamed({"x": "t"}), *rest.nodes[1:])
    tensors = {**rest.tensors, "x": TensorType(SHAPE, "int8"), "t": TensorType(shape, "int8")}
    graph = Graph(("x",), ("y",), nodes, tensors)
    after = fold_moves(graph)
    assert same(graph, after)
    assert not {"QReshape", "QTranspose"} & set(kinds(after))


@settings(max_examples=60)
@given(
    st.permutations(range(5)),
    st.sampled_from([(2, 3, 2), (3, 2, 2), (4, 3, 1), (2, 6, 1)]),
)
def test_any_chain_keeps_its_elements(order, factors):
    """Whatever becomes of reshapes around a transposition, each element lands where it did."""
    split = (N, factors[0], C // factors[0], H, W)
    moved = tuple(split[axis] for axis in order)
    final = (moved[0], moved[1] * moved[2], moved[3], moved[4])
    graph = chain(split, "".join(map(str, order)), final)
    assert same(graph, fold_moves(graph))
