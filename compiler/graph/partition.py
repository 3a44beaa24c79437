"""Which device runs each node, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler.graph import ir
from vdla.compiler.graph.capability import MIN_FILL, Target, refusal
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.user import registered

ACCELERATOR, HOST = "vdla", "cpu"
ONNXRUNTIME = "onnxruntime"  # on the host, for operators that vdla lacks


@dataclass(frozen=True)
class Placement:
    """Where a node runs; ``reason`` is for people."""

    device: str
    reason: str


Placements = dict[str, Placement]


def partition(
    graph: Graph, config: Target | None, device: str = ACCELERATOR, min_fill: float = MIN_FILL
) -> Placements:
    """Node name to its placement.

    Args:
        graph: an optimized graph.
        config: the accelerator; None where there is none.
        device: ``cpu`` puts everything on the host.
        min_fill: the share of the input lanes a convolution must fill to go on the accelerator.
    """
    machine = None if device == HOST else config
    return {n.name: place(n, graph, machine, min_fill) for n in graph.nodes}


def place(node: Node, graph: Graph, config: Target | None, min_fill: float) -> Placement:
    """The placement of one node."""
    if isinstance(node, ir.External):
        return Placement(ONNXRUNTIME, node.reason)
    if isinstance(node, ir.Custom) and registered(node.operator).schedule is None:
        return Placement(HOST, "a user's operator without a schedule")
    if config is None:
        return Placement(HOST, "device cpu has no accelerator")
    if isinstance(node, ir.Custom):
        return Placement(ACCELERATOR, "a user's schedule")
    reason = refusal(node, graph, config, min_fill)
    if reason is None:
        return Placement(ACCELERATOR, f"{_noun(node)} on int8")
    return Placement(HOST, reason)


def _noun(node: Node) -> str:
    nouns: Mapping[type[Node], str] = {
        ir.QConv2d: "convolution",
        ir.QConv2dAdd: "convolution with residual addition",
        ir.QDense: "dense layer",
        ir.QAdd: "addition",
        ir.QMaxPool: "max pool",
        ir.QAvgPool: "average pool",
    }
    return nouns.get(type(node), node.op)


CONVERSIONS = {"Quantize", "Dequantize", "FlipSign", "Im2col", "Pack", "Unpack"}


def host_layers(rows: Sequence[Mapping[str, str]]) -> tuple[list[str], int]:
    """Of a report's rows: the layers that run on the host, and how many layers there are.

    What only converts numbers or their layout on the way to the accelerator is no layer.
    """
    layers = [row for row in rows if row["op"] not in CONVERSIONS]
    return [row["name"] for row in layers if row["device"] != ACCELERATOR], len(layers)


def host_remark(rows: Sequence[Mapping[str, str]]) -> str:
    """What to say beside a cycle count of a report's rows; nothing where all layers are in it."""
    left, count = host_layers(rows)
    if not left:
        return ""
    return f"{len(left)} of {count} layers on the host: their time is not in the cycles"


def report(graph: Graph, placements: Placements) -> list[dict[str, str]]:
    """The rows of ``vdla run --json``'s ``placement``."""
    return [
        {
            "op": node.op,
            "name": node.name,
            "device": placements[node.name].device,
            "reason": placements[node.name].reason,
        }
        for node in graph.nodes
    ]
