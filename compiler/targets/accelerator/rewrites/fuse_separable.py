"""Depthwise convolutions and the 1 × 1 convolutions around them become one operator.

before: e = QConv2d(x, [96, 16, 1, 1]); d = QConv2d(e, groups=96); y = QConv2d(d, [24, 96, 1, 1])
after:  y = Fused(x){e; d; y}

What passes between them then stays on chip. It takes a config with ``forwarding``; one with
``window_taps`` alone has the depthwise convolution by itself as such an operator. Of all ways to
join a depthwise convolution to its neighbours, or to leave it as it is, the one is taken that the
analytic models say takes the fewest cycles. Where that isn't the one with all neighbours, the
placement of what is left says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeGuard

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.fused import fuse
from vdla.compiler.placement import ACCELERATOR, Placement, Placements
from vdla.compiler.targets.accelerator.operators.cost import TilingError, estimate
from vdla.compiler.targets.accelerator.operators.separable import (
    Parts,
    Separable,
    is_depthwise,
)
from vdla.compiler.targets.accelerator.operators.separable.space import cheapest_tile
from vdla.compiler.targets.accelerator.operators.template import template_of
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
from vdla.isa.config import Config
from vdla.isa.options.forwarding import forwards
from vdla.isa.options.window import window_taps

NO_TILE = 1e12  # cycles of an operator of which the buffers hold no tile: it leaves the accelerator


@dataclass(frozen=True)
class Choice:
    """One way to join convolutions: cycles of all of them one by one, and as one operator.

    ``together`` is None where the buffers hold no tile of them.
    """

    parts: Parts
    apart: float
    together: float | None

    @property
    def nodes(self) -> list[ops.QConv2d]:
        """The convolutions that are joined."""
        return [each for each in self.parts if each is not None]

    @property
    def won(self) -> float:
        """Cycles that joining saves; below zero where it costs some or can't be."""
        return -NO_TILE if self.together is None else self.apart - self.together


@dataclass(frozen=True)
class Costs:
    """Costs that decide, by a config, the number of virtual threads of schedules, and tuned
    schedules.
    """

    config: Config
    vthreads: int
    records: TileRecords | None

    def alone(self, node: Node, graph: Graph) -> float:
        """Cycles of an operator by itself, by the model of its template."""
        template = template_of(node, graph, self.config)
        try:
            tile = default_tile(template, self.config, self.vthreads, self.records)
        except TilingError:
            return NO_TILE
        return float(estimate(template.cost(tile, self.config), self.config)[0])

    def together(self, parts: Parts, graph: Graph) -> float | None:
        """Cycles of some convolutions as one; None where the buffers hold no tile of them."""
        template = Separable.of_parts(parts, graph, self.config).geometry
        tiles = (cheapest_tile(template, self.config, n) for n in range(self.vthreads, 0, -1))
        return next((best.cycles for best in tiles if best is not None), None)

    def choice(self, parts: Parts, graph: Graph) -> Choice:
        """A way to join convolutions with what it takes."""
        apart = sum(self.alone(node, graph) for node in parts if node is not None)
        return Choice(parts, apart, self.together(parts, graph))


def fuse_separable(graph: Graph, placements: Placements, costs: Costs) -> tuple[Graph, Placements]:
    """The graph with depthwise convolutions and their neighbours as one where that pays."""
    return _Fusion(graph, placements, costs).run() if fuses(costs.config) else (graph, placements)


def fuses(config: Config) -> bool:
    """Whether a config has what depthwise convolutions gain by."""
    return bool(forwards(config) or window_taps(config))


def is_grouped(node: Node) -> TypeGuard[ops.QConv2d]:
    """Whether a node is a convolution alone, in several groups of channels."""
    return isinstance(node, ops.QConv2d) and node.is_plain and node.groups > 1


class _Fusion:
    """The pass over one graph.

    ``taken`` are the nodes that are part of an operator by now. ``remarks`` say of nodes why they
    aren't joined to others.
    """

    def __init__(self, graph: Graph, placements: Placements, costs: Costs) -> None:
        self.graph, self.costs, self.config = graph, costs, costs.config
        self.placements = dict(placements)
        self.makers, self.uses = graph.producers, graph.uses
        self.taken: dict[str, ops.Fused] = {}
        self.remarks: dict[str, list[str]] = {}

    def run(self) -> tuple[Graph, Placements]:
        """Fuses each depthwise convolution in turn."""
        for node in self.graph.nodes:
            if is_grouped(node) and self._accelerated(node):
                self._fuse(node)
        nodes: list[Node] = []
        for node in self.graph.nodes:
            fused = self.taken.get(node.name)
            if fused is None or fused.parts[-1] is node:
                nodes.append(fused or node)
        self._place(nodes)
        return replace(self.graph, nodes=tuple(nodes)), self.placements

    def _place(self, nodes: Iterable[Node]) -> None:
        """Says as what fused nodes run, and why others are left out."""
        fused = {each.name: Separable.placed(each) for each in self.taken.values()}
        for node in nodes:
            reason = fused.get(node.name, self.placements[node.name].reason)
            remarks = self.remarks.get(node.name, [])
            if node.name not in fused and not remarks:
                continue
            self.placements[node.name] = Placement(ACCELERATOR, "; ".join((reason, *remarks)))

    def _fuse(self, node: ops.QConv2d) -> None:
        """Joins a grouped convolution to its neighbours, or says why not."""
        before = self._joinable(node, [self.makers.get(node.data)], node.data)
        readers = [n for n in self.uses[node.output] if getattr(n, "data", "") == node.output]
        after = self._joinable(node, readers, node.output)
        if why := self._refusal(node):
            self._leave_out(node, [*before, *after], why)
            return
        ways = [
            Parts(expand, node, project)
            for expand in (None, *before)
            for project in (None, *after)
            if expand or project or window_taps(self.config)
        ]
        if not ways:
            return
        choices = [self.costs.choice(parts, self.graph) for parts in ways]
        best, widest = max(choices, key=lambda choice: choice.won), choices[-1]
        if best.won > 0:
            fused = fuse(best.nodes, node.name)
            self.taken.update((each.name, fused) for each in best.nodes)
        if best is not widest or best.won <= 0:
            taken = best.nodes if best.won > 0 else [node]
            others = [each for each in widest.nodes if each not in taken]
            self._leave_out(node, others, self._cost(widest, max(best.won, 0.0)))

    def _joinable(
        self, node: ops.QConv2d, neighbours: Iterable[Node | None], between: str
    ) -> list[ops.QConv2d]:
        """The 1 × 1 convolutions among the neighbours that can be joined over a tensor."""
        result = []
        for other in neighbours:
            if forwards(self.config) and self._is_pointwise(other) and self._accelerated(other):
                if why := self._obstacle(other, between):
                    self._leave_out(node, [other], why)
                else:
                    result.append(other)
        return result

    def _is_pointwise(self, node: Node | None) -> TypeGuard[ops.QConv2d]:
        """Whether a node is a convolution of single pixels that computes something."""
        if not isinstance(node, ops.QConv2d) or node.moves:
            return False
        return self.graph.tensors[node.weight].shape[2:] == (1, 1)

    def _obstacle(self, node: ops.QConv2d, between: str) -> str:
        """Reason for which a 1 × 1 convolution can't be joined over a tensor; empty
        where it can.
        """
        if between in self.graph.outputs:
            return f"{between} is a result of the network"
        if len(self.uses[between]) > 1:
            return f"{between} has other readers"
        if node.epilogue and node.output == between:
            return f"an addition makes {between}"
        if node.groups > 1 or node.strides != (1, 1) or any(node.pads):
            return "expected one group, stride 1 and no padding"
        return ""

    def _refusal(self, node: ops.QConv2d) -> str:
        """Reason for which a grouped convolution is never joined; empty where it may be."""
        outputs, inputs = self.graph.tensors[node.weight].shape[:2]
        if not is_depthwise(node, self.graph):
            counts = f"{inputs} and {outputs // node.groups}"
            return f"expected one channel and one output per group, found {counts}"
        sizes = self.config.block_in, self.config.block_out
        if sizes[0] != sizes[1]:
            return f"expected block_in = block_out, found {sizes[0]} and {sizes[1]}"
        return ""

    def _cost(self, widest: Choice, won: float) -> str:
        """Reason for which convolutions aren't all joined where joining fewer of them saves ``won``
        cycles.
        """
        if widest.together is None:
            depths = ", ".join(f"{b} {self.config.depth(b)}" for b in ("inp", "wgt", "acc"))
            return f"no tile of them fits {depths} entries"
        return f"apart: {widest.apart - won:,.0f} cycles, fused: {widest.together:,.0f}"

    def _leave_out(self, node: ops.QConv2d, others: Iterable[ops.QConv2d], why: str) -> None:
        """Notes why a convolution isn't joined to others, or not computed by the window."""
        names = ", ".join(each.name for each in others)
        if names:
            self.remarks.setdefault(node.name, []).append(f"not one with {names}: {why}")
        elif window_taps(self.config) and is_depthwise(node, self.graph):
            self.remarks.setdefault(node.name, []).append(f"not by the window: {why}")

    def _accelerated(self, node: Node) -> bool:
        on_accelerator = self.placements[node.name].device == ACCELERATOR
        return on_accelerator and node.name not in self.taken
