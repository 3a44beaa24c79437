"""Nodes of laid-out control: what they read and write, as liveness takes it."""

from __future__ import annotations

import pytest

from vdla.compiler.graph.ir import BY_OP
from vdla.compiler.graph.ops.flow import (
    Begin,
    Clear,
    Copy,
    Enter,
    Flow,
    Goto,
    Label,
    Leave,
    NextTurn,
)


@pytest.mark.parametrize(
    ("node", "reads", "writes"),
    [
        (Copy(name="c", data="a", output="b"), ("a",), ("b",)),
        (Copy(name="c", data="a", turn="t", output="b"), ("a", "t"), ("b",)),
        (Copy(name="c", data="a", turn="t", whole="b", output="b"), ("a", "t", "b"), ("b",)),
        (Clear(name="c", output="b"), (), ("b",)),
        (Begin(name="c", output="b"), (), ("b",)),
        (Label(name="l"), (), ()),
        (Goto(name="g", to="l"), (), ()),
        (Goto(name="g", to="l", condition="go", when=False), ("go",), ()),
        (NextTurn(name="n", turn="t", output="t", to="l", turns=3, strict=True), ("t",), ("t",)),
        (Enter(name="e", to="f", operands=("a", "b"), results=("r",)), ("a", "b"), ("r",)),
        (Leave(name="v", operands=("r",)), ("r",), ()),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Flow) else "",
)
def test_reads_and_writes(node, reads, writes):
    assert (node.inputs, node.outputs) == (reads, writes)


@pytest.mark.parametrize(
    ("fields", "way"),
    [({}, "whole"), ({"turn": "t"}, "take"), ({"turn": "t", "whole": "b"}, "put")],
)
def test_ways_of_a_copy(fields, way):
    assert Copy(name="c", data="a", output="b", **fields).way == way


def test_texts_of_graphs_have_none():
    assert not any(issubclass(kind, Flow) for kind in BY_OP.values())
