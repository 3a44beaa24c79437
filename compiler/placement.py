"""Which device runs each node, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vdla.runtime.plan import HOSTS

if TYPE_CHECKING:
    from vdla.compiler.graph.ir import Graph

ACCELERATOR, PROCESSOR = "vdla", "cpu"
ONNXRUNTIME = "onnxruntime"  # on the processor, for operators that vdla lacks
# Operators whose class says that it ``CONVERTS``: said again for reports of compiled modules, which
# need no compiler.
CONVERSIONS = (
    "Dequantize", "Dequantize16", "FlipSign", "Im2col", "Pack", "Quantize", "Quantize16", "Unpack",
)  # fmt: skip

CONTROL = ("Call", "If", "Scan", "While")  # operators that hold others, which are layers themselves


def device_of(device: str) -> str:
    """Device on which a module for some device runs the operators that can be accelerated: all
    devices but ``HOSTS`` have an accelerator, simulated or not."""
    return device if device in HOSTS else ACCELERATOR


@dataclass(frozen=True)
class Placement:
    """Device that a node runs on; ``reason`` is for people, ``fixed``: somebody asked for it."""

    device: str
    reason: str
    fixed: bool = False


Placements = dict[str, Placement]


def layers_of(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Rows of a report that are layers: not what only converts numbers or their layout on the way
    to the accelerator, nor what decides which others run."""
    return [row for row in rows if row["op"] not in (*CONVERSIONS, *CONTROL)]


def processor_layers(rows: Sequence[Mapping[str, str]]) -> tuple[list[str], int]:
    """Layers of a report's rows that run on the processor, and the number of all layers."""
    layers = layers_of(rows)
    return [row["name"] for row in layers if row["device"] in (PROCESSOR, ONNXRUNTIME)], len(layers)


def processor_remark(rows: Sequence[Mapping[str, str]]) -> str:
    """Remark beside a cycle count of a report's rows; nothing where all layers are in it."""
    left, count = processor_layers(rows)
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
