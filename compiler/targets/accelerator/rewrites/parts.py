"""Slices of dense layers as layers of their own, where slices are no whole blocks of channels.

The gates of a recurrent cell are often slices of one vector. Where their size is no multiple of a
block, no addresses make a slice; but a layer's outputs may as well be made in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import remove_dead
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.targets.accelerator.rewrites.layers import BY_ELEMENT, operands


def part_layers(graph: Graph, block: int) -> Graph:
    """Makes parts of layers that are only read in slices, and of what works on them by element.

    before: d = QDense(x): [1, 80]; a = QTake(d): [1, 40]; b = QTake(d): [1, 40]
    after:  a = QDense(x), of the first 40 outputs; b = QDense(x), of the others

    Slices must be vectors' channels one behind another, each taken at most once.
    """
    changed = True
    while changed:
        walk = _Parts(graph.copy(), block)
        nodes = [made for node in graph.nodes for made in walk.visit(node)]
        changed = walk.changed
        graph = remove_dead(replace(walk.graph, nodes=tuple(nodes)))
    return graph


@dataclass
class _Parts:
    """One walk over a graph; ``changed`` once a slice became a part of a layer."""

    graph: Graph
    block: int
    changed: bool = False
    cut: dict[str, Node] = field(default_factory=dict)  # by what they write, layers made in parts

    def __post_init__(self) -> None:
        self.uses = self.graph.uses()

    def visit(self, node: Node) -> list[Node]:
        """The nodes in the place of one."""
        if isinstance(node, (ops.QDense, *BY_ELEMENT)) and self.in_slices(node):
            self.cut[node.output] = node
            return []
        layer = self.cut.get(node.data) if isinstance(node, ops.QTake) else None
        if not isinstance(node, ops.QTake) or layer is None:
            return [node]
        self.changed = True
        if isinstance(layer, ops.QDense):
            return [self.part(layer, node)]
        rows = {name: f"{node.output}.of.{name}" for name in operands(layer)}
        takes: list[Node] = []
        for name, taken in rows.items():
            kind = replace(self.graph.tensors[name], shape=node.shape)
            self.graph.tensors[taken] = kind
            take = replace(node, name=taken, output=taken, data=name)
            if name in self.graph.constants:
                constant = take.evaluate([self.graph.constants[name]], kind)
                self.graph.constants[taken] = constant
            else:
                takes.append(take)
        return [*takes, replace(layer.renamed(rows), name=node.name, output=node.output)]

    def in_slices(self, node: Node) -> bool:
        """Whether a layer's vectors are read in slices alone, and some are no whole blocks."""
        shape, uses = self.graph.tensors[node.output].shape, self.uses[node.output]
        alike = all(self.graph.tensors[name].shape == shape for name in operands(node))
        if len(shape) != 2 or not uses or node.output in self.graph.outputs:
            return False
        if not (alike or isinstance(node, ops.QDense)):
            return False
        ranges = [_channels(use, shape[0]) for use in uses]
        known = [each for each in ranges if each is not None]
        once = sum(map(len, known)) == len({n for each in known for n in each})
        ends = [end for each in known for end in (each.start, each.stop)]
        whole = all(end % self.block == 0 or end == shape[1] for end in ends)
        return len(known) == len(uses) and once and not whole

    def part(self, layer: ops.QDense, node: ops.QTake) -> ops.QDense:
        """A layer of some of the outputs."""
        places = node.tables()[1]
        return replace(
            layer,
            name=node.name,
            output=node.output,
            weight=self.constant(f"{node.name}.weight", layer.weight, places),
            bias=self.constant(f"{node.name}.bias", layer.bias, places),
            scale=tuple(layer.scale[place] for place in places),
        )

    def constant(self, name: str, source: str, places: Sequence[int]) -> str:
        """Some rows of a constant as one of its own."""
        array = np.ascontiguousarray(self.graph.constants[source][np.asarray(places)])
        self.graph.constants[name] = array
        self.graph.tensors[name] = replace(self.graph.tensors[source], shape=array.shape)
        return name


def _channels(node: Node, rows: int) -> range | None:
    """The channels that a node takes of all vectors, one behind another; None where it doesn't."""
    if type(node) is not ops.QTake:
        return None
    images, channels = node.tables()
    result = range(channels[0], channels[0] + len(channels))
    whole = images == tuple(range(rows)) and channels[0] >= 0
    return result if whole and channels == tuple(result) else None
