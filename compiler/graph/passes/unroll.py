"""Loops of few turns, whose number is known, as their turns one behind another: :func:`unroll`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.clone import clone
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node

MOST_NODES = 512  # of all turns of a loop together


def unroll(graph: Graph) -> Graph:
    """Replaces a Scan that computes with quantized tensors by its turns, if they are few nodes.

    before: r = Scan(x), 3 turns of y = f(x)     after: a = f(x); b = f(a); r = f(b)
    The accelerator then runs them as one program, and nothing is converted between them.
    """
    return rewrite(graph, _unrolled)


def _unrolled(node: ops.Scan, editor: Editor) -> Made:
    """Turns of a loop, and what they stack."""
    parts = [*node.body.whole()]
    size = node.turns * sum(len(part.nodes) for part in parts)
    if size > MOST_NODES or not any(part.of((ops.Quantize, ops.Dequantize)) for part in parts):
        return None
    made: list[Node] = []
    count = node.carried + node.scanned
    carried: Sequence[str] = node.operands[: node.carried]
    scanned = node.operands[node.carried : count]
    stacked: list[Sequence[str]] = []
    for turn in range(node.turns):
        slices = [_row(name, turn, editor, made) for name in scanned]
        results = _turn(node, turn, (*carried, *slices, *node.operands[count:]), editor, made)
        carried, rows = results[: node.carried], results[node.carried :]
        stacked.append([_reshaped(name, (1, *editor.shape(name)), editor, made) for name in rows])
    for name, target in zip(carried, node.outputs, strict=False):
        made.append(_again(name, target, editor))
    for parts_of, target in zip(
        zip(*stacked, strict=True), node.outputs[node.carried :], strict=True
    ):
        made.append(ops.Concat(name=target, output=target, parts=tuple(parts_of), axis=0))
    return made


def _turn(
    node: ops.Scan, turn: int, operands: Sequence[str], editor: Editor, made: list[Node]
) -> Sequence[str]:
    """Adds the nodes of one turn; its results."""
    body, prefix = node.body, f"{node.name}.{turn}."
    number = editor.constant(f"{prefix}turn", np.array(turn, np.int64))
    names = dict(zip(body.inputs, (number, *operands), strict=True))
    for name, array in body.constants.items():
        names[name] = editor.once((body.name, name), partial(editor.constant, name, array))
    for name, kind in body.tensors.items():
        if name not in names:
            names[name] = editor.tensor(f"{prefix}{name}", kind)
    copy = clone(body, prefix, names)
    editor.reasons.update(copy.reasons)
    made += copy.nodes
    return copy.outputs


def _row(name: str, turn: int, editor: Editor, made: list[Node]) -> str:
    """An element along the first axis."""
    shape = editor.shape(name)
    places = (turn, *(place for size in shape[1:] for place in range(size)))
    row = editor.like(f"{name}.{turn}", (1, *shape[1:]), name)
    made.append(ops.Take(name=row, output=row, data=name, shape=(1, *shape[1:]), places=places))
    return _reshaped(row, shape[1:], editor, made)


def _reshaped(name: str, shape: tuple[int, ...], editor: Editor, made: list[Node]) -> str:
    """A tensor under another shape."""
    result = editor.like(f"{name}.shaped", shape, name)
    made.append(_again(name, result, editor))
    return result


def _again(name: str, target: str, editor: Editor) -> Node:
    """A node that gives a tensor's elements another name."""
    kind = ops.QReshape if editor.tensors[name].dtype == "int8" else ops.Reshape
    return kind(name=target, output=target, data=name)
