"""Chains of nodes that only move elements of images, as one node that says where each comes from.

A channel shuffle is a reshape, a transposition and a reshape; so is what puts depth to space. None
of them can be done in place where channels lie in blocks, but all together may be no more than
channels in another order, or images whose pixels take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import get_args

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.graph.types import Array, Requant, Shape, TensorType

MOST = 1 << 22  # elements of an image that is followed: the numbers of each take memory
RANK = 4
Move = ops.QReshape | ops.QTranspose | ops.QTake
Tables = tuple[Array, ...]  # per axis of the result, the index of the data for each of its own


def fold_moves(graph: Graph) -> Graph:
    """Makes one node of several that reshape, transpose and take elements of an image.

    before: QReshape(QTranspose(QReshape(x)))    after: QTake(x), or QInterleave(QTake(x), …)

    Nodes between that others read stay for them.
    """
    return rewrite(graph, _folded)


def _folded(node: Move, editor: Editor) -> Made:
    """The nodes that do what a chain does that ends with a node."""
    chain = _chain(node, editor)
    if len(chain) < 2:
        return None
    data = chain[0].data
    before, after = editor.shape(data), editor.shape(node.output)
    places = _places(chain, before, editor)
    fills = {each.fill for each in chain if isinstance(each, ops.QTake) and OUTSIDE in each.places}
    if len(fills) > 1:
        return None
    moves = _Moves(editor, node, data, before, fills.pop() if fills else 0.0)
    if tables := _tables(places, before):
        return moves.take(node.name, node.output, after, tables)
    return moves.side_by_side(places) or moves.in_turns(places) or None


def _chain(node: Move, editor: Editor) -> list[Move]:
    """The nodes that lead from an image to the image that ``node`` writes, as few as there are."""
    chain: list[Move] = []
    current: Move | None = node
    if not _is_image(editor.tensors[node.output]):
        return chain
    while current is not None:
        chain.insert(0, current)
        if _is_image(editor.tensors[current.data]) and len(chain) > 1:
            return chain
        current = editor.maker(current.data, get_args(Move))
    return []


def _is_image(kind: TensorType) -> bool:
    return len(kind.shape) == RANK and 0 < prod(kind.shape) <= MOST


def _places(chain: Sequence[Move], before: Shape, editor: Editor) -> Array:
    """The number of each element of a chain's result among the data's; -1 where it is none's."""
    value = np.arange(prod(before), dtype=np.int64).reshape(before)
    for node in chain:
        if isinstance(node, ops.QTake):
            node = replace(node, fill=-1)
        kind = replace(editor.tensors[node.output], dtype="int64")
        value = node.evaluate([value], kind)
    return value


def _tables(places: Array, before: Shape) -> Tables | None:
    """The data's index along each axis, where it depends on the result's along that axis alone."""
    inside = places >= 0
    axes = [tuple(a for a in range(RANK) if a != axis) for axis in range(RANK)]
    kept = [inside.any(axis=others) for others in axes]
    first = [int(each.argmax()) for each in kept]  # an element that is the data's, if there is one
    tables: list[Array] = []
    for axis, each in enumerate(kept):
        a, b, c = (first[other] for other in axes[axis])
        line = np.moveaxis(places, axis, 0)[:, a, b, c]
        index = np.unravel_index(np.maximum(line, 0), before)[axis]
        tables.append(np.where(each, index, OUTSIDE))
    expected = np.ravel_multi_index(np.ix_(*[np.maximum(table, 0) for table in tables]), before)
    for axis, table in enumerate(tables):
        np.moveaxis(expected, axis, 0)[table == OUTSIDE] = OUTSIDE
    return tuple(tables) if np.array_equal(expected, places) else None


@dataclass(frozen=True)
class _Moves:
    """Nodes that bring the elements of an image to their places in the result of ``node``.

    ``before`` is the image's shape, ``fill`` what stands where no element of it does.
    """

    editor: Editor
    node: Node
    data: str
    before: Shape
    fill: float

    def side_by_side(self, places: Array) -> Sequence[Node]:
        """Parts one behind another along the channels, each with as many as the data."""
        count, rest = divmod(places.shape[1], self.before[1])
        if rest or count < 2:
            return ()
        parts, nodes = self.parts(np.split(places, count, axis=1))
        joined = ops.QConcat(
            name=self.node.name,
            output=self.node.output,
            parts=parts,
            axis=1,
            zeros=(0,) * count,
            requant=Requant((1.0,) * count, 0),
        )
        return (*nodes, joined) if parts else ()

    def in_turns(self, places: Array) -> Sequence[Node]:
        """Images whose pixels take turns, each with some of the data's channels."""
        after = places.shape
        down, rest_down = divmod(after[2], self.before[2])
        across, rest_across = divmod(after[3], self.before[3])
        if rest_down or rest_across or down * across < 2:
            return ()
        turns = product(range(down), range(across))
        images = [places[:, :, row::down, column::across] for row, column in turns]
        parts, nodes = self.parts(images)
        joined = ops.QInterleave(
            name=self.node.name, output=self.node.output, parts=parts, rows=down, columns=across
        )
        return (*nodes, joined) if parts else ()

    def parts(self, places: Sequence[Array]) -> tuple[tuple[str, ...], list[Node]]:
        """The names of the parts with these places, and the nodes that make them; none where one of
        them isn't taken axis by axis."""
        names: list[str] = []
        nodes: list[Node] = []
        for number, part in enumerate(places):
            tables = _tables(part, self.before)
            if tables is None:
                return (), []
            whole = part.size == prod(self.before) and (np.diff(part.ravel()) == 1).all()
            if whole and part.shape == self.before:
                names.append(self.data)
                continue
            hint = f"{self.node.name}.turn{number}"
            names.append(self.editor.like(hint, part.shape, self.node.output))
            nodes.append(self.take(names[-1], names[-1], part.shape, tables))
        return tuple(names), nodes

    def take(self, name: str, output: str, shape: Shape, tables: Tables) -> ops.QTake:
        """The node that takes elements axis by axis."""
        places = tuple(int(place) for table in tables for place in table)
        return ops.QTake(
            name=name, output=output, data=self.data, shape=shape, places=places, fill=self.fill
        )
