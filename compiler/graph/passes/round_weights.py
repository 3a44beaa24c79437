"""Weights that a file leaves in floats between integers, as int8."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.products import FloatProducts

MOST = 127
Kind = tuple[type[Node], bool]


def round_weights(graph: Graph) -> Graph:
    """Rounds weights of layers of a kind that a file quantizes nowhere.

    before: y = Q(Conv2d(DQ(x), w)), floats            after: y = Q(Conv2d(DQ(x), DQ(w8)))

    onnxruntime's QLinear operators have no transposed convolution, and some quantizers know no
    Gemm. Where a file has int8 weights for others of the kind, a layer's floats are the author's
    choice, and stay. Weights are off by at most half a step of 1/127 of their channel's largest.
    """
    around = Neighbours(graph)
    layers = [node for node in graph.nodes if isinstance(node, FloatProducts)]
    chosen = {_kind(node, around) for node in layers if node.weight not in graph.constants}
    if all(_kind(node, around) in chosen for node in layers):
        return graph

    def rounded(node: ops.Conv2d | ops.Dense, editor: Editor) -> Made:
        """A layer with weights of int8, and a scale for each output channel."""
        weight = editor.constants.get(node.weight)
        if weight is None or weight.dtype != np.float32 or _kind(node, editor) in chosen:
            return None
        if not (_is_integer(node.data, editor) and _becomes_integer(node.output, editor)):
            return None
        largest = np.abs(weight).reshape(len(weight), -1).max(axis=1)
        if not np.isfinite(largest).all():
            return None
        scale = (np.where(largest > 0, largest, 1) / MOST).astype(np.float32)
        column = scale.reshape(-1, *(1,) * (weight.ndim - 1))
        integers = editor.constant(
            f"{node.weight}.rounded", np.rint(weight / column).astype(np.int8)
        )
        real = editor.like(f"{node.weight}.real", weight.shape, node.weight)
        dequantize = ops.Dequantize(
            name=real,
            output=real,
            data=integers,
            scale=tuple(map(float, scale)),
            zero_point=(0,) * len(scale),
            axis=0,
        )
        return dequantize, replace(node, weight=real)

    return rewrite(graph, rounded)


def _kind(node: FloatProducts, around: Neighbours) -> Kind:
    """The kind of a layer, as files know them: a transposed convolution is several whose pixels
    take turns."""
    return type(node), bool(around.readers_of(node.output, ops.Interleave))


def _is_integer(name: str, around: Neighbours) -> bool:
    """Whether a tensor follows from integers alone, by moves and functions of each element."""
    maker = around.maker(name, Node)
    if isinstance(maker, ops.Dequantize):
        return maker.axis is None
    if maker is None or not (maker.by_element or maker.integer is not None):
        return False
    operands = [each for each in maker.inputs if each not in around.constants]
    return all(_is_integer(each, around) for each in operands)


def _becomes_integer(name: str, around: Neighbours) -> bool:
    """Whether a tensor is quantized by all who read it, behind limits, sums and moves."""
    readers = around.readers(name)
    if not readers or name in around.outputs:
        return False
    through = (ops.Relu, ops.Clip, ops.Interleave, ops.Add, ops.Concat)
    return all(
        isinstance(node, ops.Quantize)
        or (isinstance(node, through) and _becomes_integer(node.output, around))
        or (node.integer is not None and _becomes_integer(node.output, around))
        for node in readers
    )
