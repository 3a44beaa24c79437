"""Depthwise convolutions and the 1 × 1 convolutions around them become one operator.

before: e = QConv2d(x, [96, 16, 1, 1]); d = QConv2d(e, groups=96); y = QConv2d(d, [24, 96, 1, 1])
after:  y = Fused(x){e; d; y}

What passes between them then stays on chip. It takes a config with ``forwarding``; one with
``window_taps`` alone has the depthwise convolution by itself as such an operator. Of all ways to
join a depthwise convolution to its neighbours, or to leave it as it is, the one is taken that the
analytic models say takes the fewest cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.placement import ACCELERATOR, Placement, Placements
from vdla.compiler.targets.accelerator.operators.cost import estimate
from vdla.compiler.targets.accelerator.operators.separable import (
    Parts,
    Separable,
    is_depthwise,
)
from vdla.compiler.targets.accelerator.operators.separable.cost import Model, cheapest_tile
from vdla.compiler.targets.accelerator.operators.template import template_of
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
from vdla.isa.config import Config


@dataclass(frozen=True)
class Costs:
    """What decides: a config, how many virtual threads schedules use, and tuned schedules."""

    config: Config
    vthreads: int
    records: TileRecords | None

    def alone(self, node: Node, graph: Graph) -> float:
        """Cycles of an operator by itself, by the model of its template."""
        template = template_of(node, graph, self.config)
        tile = default_tile(template, self.config, self.vthreads, self.records)
        return estimate(template.cost(tile, self.config).candidate(0), self.config)

    def together(self, parts: Parts, graph: Graph) -> float | None:
        """Cycles of some convolutions as one; None where the buffers hold no tile of them."""
        template = Separable.of_parts(parts, graph, self.config).geometry
        tiles = (cheapest_tile(template, self.config, n) for n in range(self.vthreads, 0, -1))
        tile = next((tile for tile in tiles if tile is not None), None)
        return None if tile is None else Model(template, self.config).cycles(tile)


def fuse_separable(graph: Graph, placements: Placements, costs: Costs) -> tuple[Graph, Placements]:
    """The graph with depthwise convolutions and their neighbours as one where that pays."""
    return _Fusion(graph, placements, costs).run() if fuses(costs.config) else (graph, placements)


def fuses(config: Config) -> bool:
    """Whether a config has what depthwise convolutions gain by."""
    return config.block_in == config.block_out and bool(config.forwarding or config.window_taps)


class _Fusion:
    """The pass over one graph; ``taken`` are the nodes that are part of an operator by now."""

    def __init__(self, graph: Graph, placements: Placements, costs: Costs) -> None:
        self.graph, self.costs = graph, costs
        self.placements = dict(placements)
        self.makers, self.uses = graph.producers(), graph.uses()
        self.taken: dict[str, ops.Fused] = {}

    def run(self) -> tuple[Graph, Placements]:
        """Fuses each depthwise convolution in turn."""
        for node in self.graph.nodes:
            if is_depthwise(node, self.graph) and self._accelerated(node):
                self._fuse(node)
        nodes = []
        for node in self.graph.nodes:
            fused = self.taken.get(node.name)
            if fused is None:
                nodes.append(node)
            elif fused.parts[-1] is node:
                nodes.append(fused)
                self.placements[fused.name] = Placement(ACCELERATOR, Separable.placed(fused))
        return replace(self.graph, nodes=tuple(nodes)), self.placements

    def _fuse(self, node: ops.QConv2d) -> None:
        """Joins a depthwise convolution to its neighbours, or not."""
        best, least = None, 0.0
        for parts in self._choices(node):
            cycles = self.costs.together(parts, self.graph)
            if cycles is None:
                continue
            won = cycles - sum(self.costs.alone(n, self.graph) for n in parts if n is not None)
            if won < least:
                best, least = parts, won
        if best is not None:
            nodes = [each for each in best if each is not None]
            fused = fuse(nodes, node.name)
            self.taken.update((each.name, fused) for each in nodes)

    def _choices(self, node: ops.QConv2d) -> Iterator[Parts]:
        """The ways to join a depthwise convolution to none, one or both of its neighbours."""
        before: list[ops.QConv2d | None] = [None]
        after: list[ops.QConv2d | None] = [None]
        if self.costs.config.forwarding:
            before += self._pointwise([self.makers.get(node.data)], node.data)
            readers = [n for n in self.uses[node.output] if getattr(n, "data", "") == node.output]
            after += self._pointwise(readers, node.output)
        for expand in before:
            for project in after:
                if expand or project or self.costs.config.window_taps:
                    yield Parts(expand, node, project)

    def _pointwise(self, nodes: Sequence[Node | None], between: str) -> Iterator[ops.QConv2d]:
        """The neighbours among ``nodes`` that can be joined over the tensor ``between``."""
        alone = len(self.uses[between]) == 1 and between not in self.graph.outputs
        for node in nodes:
            if alone and self._is_pointwise(node) and self._accelerated(node):
                yield node

    def _is_pointwise(self, node: Node | None) -> TypeGuard[ops.QConv2d]:
        """Whether a node is a convolution of single pixels, all channels with all."""
        if not isinstance(node, ops.QConv2d):
            return False
        kernel = self.graph.tensors[node.weight].shape[2:]
        plain = node.groups == 1 and node.strides == (1, 1) and not any(node.pads)
        return kernel == (1, 1) and plain and not node.MOVES

    def _accelerated(self, node: Node) -> bool:
        on_accelerator = self.placements[node.name].device == ACCELERATOR
        return on_accelerator and node.name not in self.taken
