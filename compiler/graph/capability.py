"""What the accelerator can take: one small question per operator.

Each function gets the node, its graph and the config, and answers with the reason the node must run
on the host, or None. ``REFUSALS`` is the table; an operator that isn't in it runs on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from vdla.compiler.graph import ir
from vdla.compiler.graph.ir import Graph, Node

MIN_FILL = 0.5  # below this share of the input lanes, the host is the better place


class Target(Protocol):
    """What partition and layout need of a config (``vdla.isa.config.Config`` is one)."""

    @property
    def block_in(self) -> int: ...

    @property
    def block_out(self) -> int: ...


Question = Callable[[Any, Graph, Target, float], str | None]


def _blind(node: Any, graph: Graph) -> str | None:
    """Windows that never look at the image, in a direction: strides step over all of it."""
    shape = graph.tensors[node.weight].shape[2:] if hasattr(node, "weight") else node.kernel
    image, out = graph.tensors[node.data].shape[2:], graph.tensors[node.output].shape[2:]
    for i in range(2):
        positions = range(-node.pads[i], out[i] * node.strides[i] - node.pads[i], node.strides[i])
        taps = range(0, shape[i] * node.dilations[i], node.dilations[i])
        if not any(0 <= p + tap < image[i] for p in positions for tap in taps):
            return "every window lies in the padding"
    return None


def _convolution(node: Any, graph: Graph, target: Target, min_fill: float) -> str | None:
    return _input_channels(node, graph, target, min_fill) or _blind(node, graph)


def _max_pool(node: ir.QMaxPool, graph: Graph, target: Target, min_fill: float) -> str | None:
    return _blind(node, graph)


def _input_channels(node: Any, graph: Graph, target: Target, min_fill: float) -> str | None:
    channels = graph.tensors[node.data].shape[1]
    fill = channels / target.block_in
    if fill >= min(min_fill, 1.0):
        return None
    noun = "channel fills" if channels == 1 else "channels fill"
    return f"{channels} input {noun} {fill:.0%} of the {target.block_in}-lane block".replace(
        "%", " %"
    )


def _average(node: ir.QAvgPool, graph: Graph, target: Target, min_fill: float) -> str | None:
    if not node.uniform:
        return "the divisor of the average varies at the edges"
    return _blind(node, graph)


def _image(node: Node, graph: Graph, target: Target, min_fill: float) -> str | None:
    rank = len(graph.tensors[node.output].shape)
    return None if rank in (2, 4) else f"a tensor of {rank} dimensions has no channel blocks"


def _never(node: Node, graph: Graph, target: Target, min_fill: float) -> str | None:
    return None


REFUSALS: dict[type[Node], Question] = {
    ir.QConv2d: _convolution,
    ir.QConv2dAdd: _convolution,
    ir.QDense: _never,
    ir.QAdd: _image,
    ir.QMaxPool: _max_pool,
    ir.QAvgPool: _average,
}

HOST_ONLY: dict[type[Node], str] = {
    ir.Quantize: "float input becomes integers",
    ir.Dequantize: "integers become float output",
    ir.FlipSign: "unsigned bytes become signed at the boundary",
    ir.QConcat: "concatenation moves bytes; no arithmetic for the accelerator",
    ir.QClip: "change of scale alone; not supported on the accelerator",
    ir.QReshape: "channel blocks can't be reshaped in place",
    ir.QTranspose: "channel blocks can't be transposed in place",
    ir.Im2col: "layout change on the way to the accelerator",
    ir.Pack: "layout change on the way to the accelerator",
    ir.Unpack: "layout change on the way from the accelerator",
}


def refusal(node: Node, graph: Graph, target: Target, min_fill: float = MIN_FILL) -> str | None:
    """Why ``node`` can't or shouldn't run on the accelerator; None if it should."""
    question = REFUSALS.get(type(node))
    if question is not None:
        return question(node, graph, target, min_fill)
    if type(node) in HOST_ONLY:
        return HOST_ONLY[type(node)]
    name = f"float operator {getattr(node, 'function', node.op)}"
    return f"{name}: {graph.reasons[node.name]}" if node.name in graph.reasons else name
