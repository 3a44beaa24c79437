"""Quantizers behind operators whose results are their operand's steps, which need none.

What a Relu, a MaxPool or a Reshape gives of dequantized integers are values of the same steps, so
that quantizing it by the same scale and zero point changes nothing. PyTorch's recipes leave such
quantizers out, but to the passes one behind an operator says that it is one of integers.
"""

from __future__ import annotations

from collections import defaultdict

import onnx
from onnx import helper

SAME_STEPS = (
    "Relu", "MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice",
    "DepthToSpace", "SpaceToDepth",
)  # fmt: skip


def add_quantizers(model: onnx.ModelProto) -> None:
    """Puts a quantizer and a dequantizer behind each such operator that has none, in place."""
    graph = model.graph
    constants = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    readers: dict[str, set[str]] = defaultdict(set)
    for node in graph.node:
        for name in node.input:
            readers[name].add(node.op_type)
    for value in graph.output:
        readers[value.name].add("output")
    dequantizers: dict[str, onnx.NodeProto] = {}  # by their results
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type == "DequantizeLinear" and constants.get(node.input[1]) in ((), (1,)):
            dequantizers[node.output[0]] = node
        source = dequantizers.get(node.input[0]) if node.input else None
        if source is None or node.op_type not in SAME_STEPS or len(node.output) > 1:
            continue
        if readers[node.output[0]] - {"QuantizeLinear"}:
            nodes += _pair(node, source)
            dequantizers[nodes[-1].output[0]] = nodes[-1]
    del graph.node[:]
    graph.node.extend(nodes)


def _pair(node: onnx.NodeProto, source: onnx.NodeProto) -> list[onnx.NodeProto]:
    """A quantizer and a dequantizer of a node's result, which takes the result's name, with what
    the node's operand was quantized by."""
    (name,), rest = node.output, source.input[1:]
    steps, integers = f"{name}.steps", f"{name}.integers"
    node.output[0] = steps
    pair = [
        helper.make_node("QuantizeLinear", [steps, *rest], [integers], f"{node.name}.quantize"),
        helper.make_node("DequantizeLinear", [integers, *rest], [name], f"{node.name}.dequantize"),
    ]
    for each in pair:
        each.metadata_props.extend(node.metadata_props)
    return pair
