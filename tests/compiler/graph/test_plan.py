"""Tensors that are needed at the same time have bytes of their own, loops considered."""

from __future__ import annotations

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops import flow
from vdla.compiler.graph.plan import lifetimes, plan_memory
from vdla.compiler.graph.types import TensorType

ROW, ROWS = TensorType((3,), "float32"), TensorType((2, 3), "float32")


def loop():
    """A loop that copies the rows of x to y, one in a turn."""
    nodes = (
        flow.Clear(name="clear", output="turn"),
        flow.Label(name="begin"),
        flow.Copy(name="take", output="row", data="x", turn="turn"),
        flow.Copy(name="put", output="y", data="row", turn="turn", whole="y"),
        flow.NextTurn(name="next", output="turn", turn="turn", to="begin", turns=2, strict=False),
    )
    tensors = {"x": ROWS, "turn": TensorType((), "int64"), "row": ROW, "y": ROWS}
    return Graph(("x",), ("y",), nodes, tensors)


def test_what_a_turn_leaves_keeps_its_bytes_in_the_next():
    """The rows of y that are written lie there while the next turn takes its row of x."""
    begin, end = lifetimes(loop())["y"]
    assert begin <= 2 < end
    offsets = plan_memory(loop()).offsets
    assert offsets["row"] not in range(offsets["y"], offsets["y"] + ROWS.nbytes)
