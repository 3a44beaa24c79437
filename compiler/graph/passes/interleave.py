"""Quantization, and operators by elements, moved from interleaved images to their parts."""

from __future__ import annotations

from dataclasses import replace

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node


def move_interleave(graph: Graph) -> Graph:
    """Moves an Interleave behind the ReLU, the clip and the rounding that follow it.

    before: y = Quantize(Relu(Interleave(a, b)))
    after:  y = QInterleave(Quantize(Relu(a)), Quantize(Relu(b)))

    It is exact, since all of them work pixel by pixel.
    """
    while (step := _moved(graph)) is not None:
        graph = step
    return graph


def _moved(graph: Graph) -> Graph | None:
    """The graph after one step of ``move_interleave``; None where there is none left."""
    makers, uses = graph.producers(), graph.uses()
    for node in graph.nodes:
        if not _works_by_pixels(node):
            continue
        source = makers.get(node.inputs[0])
        if not isinstance(source, ops.Interleave) or source.output in graph.outputs:
            continue
        if len(uses[source.output]) == 1:
            return _exchanged(graph, source, node)
    return None


def _works_by_pixels(node: Node) -> bool:
    """Whether a node's pixels depend on its data's pixels in the same places alone."""
    if isinstance(node, ops.Quantize):
        return node.axis in (None, 1)
    return isinstance(node, ops.Relu | ops.Clip)


def _exchanged(graph: Graph, source: ops.Interleave, node: Node) -> Graph:
    """A node on each part, and the parts' results interleaved."""
    kind = graph.tensors[node.output]
    shape = graph.tensors[source.parts[0]].shape
    before = [
        replace(
            node.renamed({source.output: part}),
            name=f"{node.name}.{number}",
            output=f"{node.output}.part{number}",
        )
        for number, part in enumerate(source.parts)
    ]
    parts = tuple(each.output for each in before)
    joined = ops.QInterleave if isinstance(node, ops.Quantize) else ops.Interleave
    after = joined(
        name=source.name, output=node.output, parts=parts, rows=source.rows, columns=source.columns
    )
    place: dict[str, list[Node]] = {source.name: [], node.name: [*before, after]}
    nodes = [each for old in graph.nodes for each in place.get(old.name, [old])]
    return graph.copy(nodes, tensors={name: replace(kind, shape=shape) for name in parts})
