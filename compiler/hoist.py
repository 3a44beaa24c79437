"""Conversions that leave a loop: what turn after turn carries stays as the turns compute it.

    before: begin; q = Quantize(x); p = f(q); y = Dequantize(p); x = y; goto begin
    after:  q = Quantize(x); begin; p = f(q); q = p; goto begin; y = Dequantize(p); x = y

A conversion goes where it alone reads what is carried, its inverse makes that for the next turn,
and nothing else reads what the inverse makes: integers that become numbers and again integers of
the same scale are the same ones. So do channel blocks. Nothing is converted where no turn is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.network import Network


@dataclass(frozen=True)
class Carried:
    """A tensor that a loop carries from turn to turn.

    The caller of a body gives ``whole`` and gets ``result``; nodes of ``before`` make ``first`` of
    the one, which turns read, and those of ``after`` make the other one of ``last``, which turns
    write.
    """

    whole: str
    result: str
    first: str
    last: str
    before: Sequence[Node] = ()
    after: Sequence[Node] = ()


def hoist(body: Network, wholes: Sequence[str], results: Sequence[str]) -> list[Carried]:
    """Tensors that a loop carries, with the conversions that leave it; the body has them still."""
    return [_carried(body.graph, *pair) for pair in zip(wholes, results, strict=True)]


def without(body: Network, carried: Sequence[Carried]) -> Network:
    """The body less the conversions that leave it."""
    gone = {node.name for each in carried for node in (*each.before, *each.after)}
    nodes = tuple(node for node in body.graph.nodes if node.name not in gone)
    return replace(body, graph=replace(body.graph, nodes=nodes))


def _carried(graph: Graph, whole: str, result: str) -> Carried:
    uses, makers = graph.uses, graph.producers
    first, last, before, after = whole, result, list[Node](), list[Node]()
    while graph.outputs.count(result) == 1 and first not in graph.outputs:
        start, end = uses[first], makers.get(last)
        others = [node for node in uses[last] if node not in after]
        if len(start) != 1 or end is None or others or not _are_inverse(start[0], end, graph):
            break
        before, after = [*before, start[0]], [end, *after]
        first, last = start[0].output, end.inputs[0]
    return Carried(whole, result, first, last, before, after)


def _are_inverse(node: Node, other: Node, graph: Graph) -> bool:
    """Whether a conversion takes back what another one did, of tensors that lie alike."""
    first, second = map(graph.tensors.__getitem__, (node.output, other.inputs[0]))
    parts, others = (
        each.parts if isinstance(each, ops.Fused) else (each,) for each in (node, other)
    )
    return (
        (first.physical, first.dtype) == (second.physical, second.dtype)
        and len(parts) == len(others)
        and all(map(_takes_back, parts, reversed(others)))
    )


def _takes_back(node: Node, other: Node) -> bool:
    """Whether ``other`` made what ``node`` makes again."""
    if isinstance(node, ops.Quantize) and isinstance(other, ops.Dequantize):
        fields = ("scale", "zero_point", "axis")
        return all(getattr(node, key) == getattr(other, key) for key in fields)
    is_layout = isinstance(node, ops.Pack) and isinstance(other, ops.Unpack)
    return is_layout and getattr(node, "block", 0) == getattr(other, "block", 0)
