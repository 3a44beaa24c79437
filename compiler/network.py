"""A network whose every node is placed and has its code: steps of a run plan, but no addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops import flow
from vdla.compiler.graph.ops.views import View
from vdla.compiler.placement import ACCELERATOR, Placements, layers_of, report
from vdla.compiler.targets.target import Code, Part, Target
from vdla.runtime.plan import Call, Clear, Copy, Jump, Next, Plan, Return, Step

Parts = Mapping[str, Part]  # by their targets' devices
DEVICES = {ACCELERATOR: "the accelerator", "gpu": "the GPU"}  # for people


@dataclass(frozen=True)
class Network:
    """A laid-out graph with the targets that run it, and the code of each node that takes any, by
    the node's name; no addresses yet.

    ``regions`` are those of its nodes that hold any, by their names, and ``functions`` what nodes
    call; ``linear.py`` makes one network without of all of them.
    """

    graph: Graph
    placements: Placements
    targets: Sequence[Target]
    codes: Mapping[str, Code[object]]
    regions: Mapping[str, Sequence[Network]] = field(default_factory=dict)
    functions: Mapping[str, Network] = field(default_factory=dict)

    def report(self) -> list[dict[str, str]]:
        """Rows of the placement report: its own nodes, each with those of its regions behind it,
        and those of its functions."""
        rows = []
        for node, row in zip(self.graph.nodes, report(self.graph, self.placements), strict=True):
            inner = [each for region in self.regions.get(node.name, ()) for each in region.report()]
            if node.regions:
                row = {**row, "reason": f"steps of the run plan{self._shares(inner)}"}
            rows += [row, *inner]
        return [*rows, *(row for each in self.functions.values() for row in each.report())]

    def _shares(self, rows: Sequence[Mapping[str, str]]) -> str:
        """The part of a region's layers that runs on the first of several devices, for people."""
        first, layers = self.targets[0].DEVICE, layers_of(rows)
        if len(self.targets) < 2 or not layers:
            return ""
        count = sum(row["device"] == first for row in layers)
        return f"; {count} of {len(layers)} layers in it on {DEVICES.get(first, first)}"

    def parts(self) -> Parts:
        """Parts of the network's module, none of which knows of the others."""
        return {target.DEVICE: self._part(target) for target in self.targets}

    def _part(self, target: Target) -> Part:
        graph, placements = self.graph, self.placements
        codes = {
            name: code
            for name, code in self.codes.items()
            if placements[name].device == target.DEVICE
        }
        return target.part(graph, placements, codes)

    def steps(self, parts: Parts) -> Plan:
        """The run plan: nodes of one target that follow one another are a row, of which its part
        makes steps. What is on no target's device is the last one's."""
        last = self.targets[-1].DEVICE

        def device(node: Node) -> str:
            own = self.placements[node.name].device
            return "" if isinstance(node, flow.Flow) else own if own in parts else last

        steps: list[Step | flow.Flow] = []
        for name, row in groupby(self.graph.nodes, device):
            nodes = [*row]
            steps += parts[name].steps(nodes) if name else _flow(nodes, parts)
        return _with_jumps(steps)


def _flow(row: Sequence[Node], parts: Parts) -> list[flow.Flow]:
    """The nodes that lay out control, less those that do nothing: copies of bytes to themselves,
    and beginnings."""
    views = {name: view for part in parts.values() for name, view in part.views.items()}

    def is_idle(node: Node) -> bool:
        if isinstance(node, flow.Begin):
            return True
        ends = [views.get(name, View(name)) for name in (*node.inputs, node.output)]
        return isinstance(node, flow.Copy) and node.turn is None and ends[0] == ends[1]

    return [node for node in row if isinstance(node, flow.Flow) and not is_idle(node)]


def _with_jumps(steps: Sequence[Step | flow.Flow]) -> Plan:
    """Steps among which labels are the numbers of the steps behind them."""
    labels, count = dict[str, int](), 0
    for step in steps:
        if isinstance(step, flow.Label):
            labels[step.name] = count
        else:
            count += 1
    return tuple(
        _step(step, labels) if isinstance(step, flow.Flow) else step
        for step in steps
        if not isinstance(step, flow.Label)
    )


def _step(node: flow.Flow, labels: Mapping[str, int]) -> Step:
    """The step that a node stands for."""
    match node:
        case flow.Copy():
            return Copy(node.name, (node.data, node.output), node.turn or "", node.way)
        case flow.Clear():
            return Clear(node.name, (node.output,))
        case flow.Goto():
            return Jump(node.name, labels[node.to], node.condition or "", node.when)
        case flow.NextTurn():
            return Next(node.name, labels[node.to], node.turn, node.turns, node.strict)
        case flow.Enter():
            return Call(node.name, labels[node.to], tuple(sorted(node.frame)))
    return Return(node.name)
