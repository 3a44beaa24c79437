"""Which device runs each node, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.operators.template import BY_NODE
from vdla.compiler.user import registered
from vdla.isa.config import Config

MIN_FILL = 0.5  # below this share of the input lanes, a convolution is better off on the host
ACCELERATOR, HOST = "vdla", "cpu"
ONNXRUNTIME = "onnxruntime"  # on the host, for operators that vdla lacks


def device_of(device: str) -> str:
    """Where a module for some device runs what can be accelerated: devices but ``cpu`` have an
    accelerator, simulated or not."""
    return HOST if device == HOST else ACCELERATOR


@dataclass(frozen=True)
class Placement:
    """Where a node runs; ``reason`` is for people."""

    device: str
    reason: str


Placements = dict[str, Placement]


def partition(
    graph: Graph, config: Config | None, device: str = ACCELERATOR, min_fill: float = MIN_FILL
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


def place(node: Node, graph: Graph, config: Config | None, min_fill: float) -> Placement:
    """The placement of one node."""
    if isinstance(node, ops.External):
        return Placement(ONNXRUNTIME, node.reason)
    if isinstance(node, ops.Custom) and registered(node.operator).schedule is None:
        return Placement(HOST, "a user's operator without a schedule")
    if config is None:
        return Placement(HOST, "device cpu has no accelerator")
    reason = refusal(node, graph, config, min_fill)
    if reason is None:
        return Placement(ACCELERATOR, BY_NODE[type(node)].placed(node))
    return Placement(HOST, reason)


HOST_ONLY: dict[type[Node], str] = {
    ops.Quantize: "float input becomes integers",
    ops.Dequantize: "integers become float output",
    ops.FlipSign: "unsigned bytes become signed at the boundary",
    ops.QConcat: "concatenation moves bytes; no arithmetic for the accelerator",
    ops.QClip: "change of scale alone; not supported on the accelerator",
    ops.QReshape: "channel blocks can't be reshaped in place",
    ops.QTranspose: "channel blocks can't be transposed in place",
    ops.Im2col: "layout change on the way to the accelerator",
    ops.Pack: "layout change on the way to the accelerator",
    ops.Unpack: "layout change on the way from the accelerator",
}


def refusal(node: Node, graph: Graph, config: Config, min_fill: float = MIN_FILL) -> str | None:
    """Why ``node`` can't or shouldn't run on the accelerator; None if it should."""
    if template := BY_NODE.get(type(node)):
        return template.refusal(node, graph, config, min_fill)
    if type(node) in HOST_ONLY:
        return HOST_ONLY[type(node)]
    name = f"float operator {getattr(node, 'function', node.op)}"
    return f"{name}: {graph.reasons[node.name]}" if node.name in graph.reasons else name


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
