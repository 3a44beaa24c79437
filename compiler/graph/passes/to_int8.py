"""Tensors of uint8 become int8: :func:`to_int8`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph, Node


def to_int8(graph: Graph) -> Graph:
    """Makes every uint8 tensor int8, its values and zero point 128 lower.

    before: Quantize zp=z → u8     after: Quantize zp=z-128 → i8     (and Dequantize likewise)
    A uint8 input or output of the graph, or of any node but those two, keeps its type behind a
    FlipSign; a tensor that has one stays.
    """
    flipped = {name for node in graph.of(ops.FlipSign) for name in (node.data, node.output)}
    kinds = graph.tensors.items()
    unsigned = {n for n, t in kinds if t.dtype == "uint8" and t.elements} - flipped
    if not unsigned:
        return graph
    others = [n for n in graph.nodes if not isinstance(n, ops.Quantize | ops.Dequantize)]
    outside = [name for node in others for name in node.inputs]
    written = [name for node in others for name in node.outputs]
    kept = unsigned & {*graph.inputs, *graph.outputs, *outside, *written}
    names = {n: f"{n}.signed" for n in kept}
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    nodes: list[Node] = []
    for name in unsigned:
        tensors[names.get(name, name)] = replace(graph.tensors[name], dtype="int8")
        if name in constants:
            signed = np.asarray(constants[name] ^ np.uint8(0x80)).view(np.int8)
            constants[names.get(name, name)] = signed
    for name in graph.inputs:
        if name in names:
            nodes.append(ops.FlipSign(name=f"{name}.flip", output=names[name], data=name))
    for node in graph.nodes:
        rounds = isinstance(node, ops.Quantize | ops.Dequantize)
        nodes.append(_signed_node(node, unsigned, names) if rounds else node)
        for name in node.outputs:
            if name in names:
                ends = (names[name], name) if rounds else (name, names[name])
                nodes.append(ops.FlipSign(name=f"{name}.flip", data=ends[0], output=ends[1]))
    return replace(graph, nodes=tuple(nodes), tensors=tensors, constants=constants)


def _signed_node(node: Node, unsigned: set[str], names: dict[str, str]) -> Node:
    quantizes = isinstance(node, ops.Quantize) and node.output in unsigned
    dequantizes = isinstance(node, ops.Dequantize) and node.data in unsigned
    if quantizes or dequantizes:
        assert isinstance(node, ops.Quantize | ops.Dequantize)
        node = replace(node, zero_point=tuple(z - 128 for z in node.zero_point))
    return replace(node.renamed(names), output=names.get(node.output, node.output))
