"""Chains of nodes that only move elements of images, as one node that says where each comes from.

A channel shuffle is a reshape, a transposition and a reshape; so is what puts depth to space. None
of them can be done in place where channels lie in blocks, but all together may be no more than
channels in another order, or images whose pixels take turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Array, Graph, Node, Shape, TensorType
from vdla.compiler.graph.passes.fold import remove_dead

MOST = 1 << 22  # elements of an image that is followed: the numbers of each take memory
RANK = 4
Tables = tuple[Array, ...]  # per axis of the result, the index of the data for each of its own


def fold_moves(graph: Graph) -> Graph:
    """Makes one node of several that reshape, transpose and take elements of an image.

    before: QReshape(QTranspose(QReshape(x)))    after: QTake(x), or QInterleave(QTake(x), …)

    Nodes between that others read stay for them.
    """
    makers = graph.producers()
    nodes: list[Node] = []
    tensors = dict(graph.tensors)
    changed = False
    for node in graph.nodes:
        folded = _folded(node, graph, makers)
        changed |= bool(folded)
        for each in folded or (node,):
            kind = graph.tensors[node.output]
            if each.output not in tensors:
                assert isinstance(each, ops.QTake)
                tensors[each.output] = replace(kind, shape=each.shape)
            nodes.append(each)
    return remove_dead(replace(graph, nodes=tuple(nodes), tensors=tensors)) if changed else graph


def _folded(node: Node, graph: Graph, makers: Mapping[str, Node]) -> Sequence[Node]:
    """The nodes that do what a chain does that ends with ``node``; none where it stays."""
    chain = _chain(node, graph, makers)
    if len(chain) < 2:
        return ()
    data = chain[0].inputs[0]
    before, after = graph.tensors[data].shape, graph.tensors[node.output].shape
    places = _places(chain, before, graph)
    if tables := _tables(places, before):
        return (_take(node.name, node.output, data, after, tables),)
    return _in_turns(node, data, before, places)


def _chain(node: Node, graph: Graph, makers: Mapping[str, Node]) -> list[Node]:
    """The nodes that lead from an image to the image that ``node`` writes, as few as there are."""
    chain: list[Node] = []
    if not _is_image(graph.tensors[node.output]):
        return chain
    current: Node | None = node
    while isinstance(current, ops.QReshape | ops.QTranspose | ops.QTake):
        chain.insert(0, current)
        data = current.inputs[0]
        if _is_image(graph.tensors[data]) and len(chain) > 1:
            return chain
        current = makers.get(data)
    return []


def _is_image(kind: TensorType) -> bool:
    return len(kind.shape) == RANK and 0 < prod(kind.shape) <= MOST


def _places(chain: Sequence[Node], before: Shape, graph: Graph) -> Array:
    """The number of each element of a chain's result among the data's; -1 where it is none's."""
    value = np.arange(prod(before), dtype=np.int64).reshape(before)
    for node in chain:
        if isinstance(node, ops.QTake):
            node = replace(node, fill=-1)
        kind = replace(graph.tensors[node.output], dtype="int64")
        value = node.evaluate([value], kind)
    return value


def _tables(places: Array, before: Shape) -> Tables | None:
    """The data's index along each axis, where it depends on the result's along that axis alone."""
    if (places < 0).any():
        return None
    lines = [np.moveaxis(places, axis, 0)[:, 0, 0, 0] for axis in range(RANK)]
    tables = tuple(np.unravel_index(line, before)[axis] for axis, line in enumerate(lines))
    expected = np.ravel_multi_index(np.ix_(*tables), before)
    return tables if np.array_equal(expected, places) else None


def _in_turns(node: Node, data: str, before: Shape, places: Array) -> Sequence[Node]:
    """Images whose pixels take turns, each with some of the data's channels."""
    after = places.shape
    down, rest_down = divmod(after[2], before[2])
    across, rest_across = divmod(after[3], before[3])
    if rest_down or rest_across or down * across < 2:
        return ()
    parts: list[Node] = []
    for number, (row, column) in enumerate(product(range(down), range(across))):
        part = places[:, :, row::down, column::across]
        tables = _tables(part, before)
        if tables is None:
            return ()
        name = f"{node.name}.turn{number}"
        parts.append(_take(name, name, data, part.shape, tables))
    joined = ops.QInterleave(
        name=node.name,
        output=node.output,
        parts=tuple(part.output for part in parts),
        rows=down,
        columns=across,
    )
    return (*parts, joined)


def _take(name: str, output: str, data: str, shape: Shape, tables: Tables) -> ops.QTake:
    places = tuple(int(place) for table in tables for place in table)
    return ops.QTake(name=name, output=output, data=data, shape=shape, places=places)
