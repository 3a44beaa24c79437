"""The graph as text: one line per tensor the caller sees, one per node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vdla.compiler.graph.ir import Graph, Node, TensorType


def format_type(kind: TensorType) -> str:
    """``int8[1, 64, 56, 56] * 0.02 @ -3``, and ``/16`` for channels in blocks of 16."""
    text = f"{kind.dtype}{list(kind.shape)}"
    if kind.block:
        text += f"/{kind.block}"
    if kind.quant:
        text += f" * {kind.quant.scale:.6g} @ {kind.quant.zero_point}"
    return text


def format_node(node: Node, kind: TensorType, place: str = "") -> str:
    """``y = QConv2d(x, w, b) strides=(2, 2) … : int8[…]``."""
    values = " ".join(f"{k}={_short(v)}" for k, v in node.attributes())
    call = f"{node.output} = {node.op}({', '.join(node.inputs)})"
    where = f"  # {node.name}{place}"
    return f"{call} {values}".rstrip() + f" : {format_type(kind)}{where}"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple):
        if len(value) > 4:
            return f"({_short(value[0])}, … {len(value)} values)"
        return f"({', '.join(_short(v) for v in value)})"
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    return str(value)


def format_graph(graph: Graph, places: Mapping[str, str] | None = None) -> str:
    """The whole graph; ``places`` maps node names to devices."""
    lines = [f"graph {graph.name}"]
    for title, names in (("input", graph.inputs), ("output", graph.outputs)):
        lines += [f"  {title} {n} : {format_type(graph.tensors[n])}" for n in names]
    size = sum(a.nbytes for a in graph.constants.values())
    lines.append(f"  {len(graph.constants)} constants, {size} bytes")
    for node in graph.nodes:
        place = f" on {places[node.name]}" if places and node.name in places else ""
        lines.append("  " + format_node(node, graph.tensors[node.output], place))
    return "\n".join(lines) + "\n"
