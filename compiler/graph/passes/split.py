"""Layers that become several, or of more channels, since one of integers isn't enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import int8_source, quantizing
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.passes.move_qdq import joined_integers, quant_of
from vdla.compiler.graph.quantized_layers import LIMITS, scaled_weights, times, value_of
from vdla.compiler.graph.types import Array, TensorType

MOST_WEIGHTS = 1 << 20  # of a layer of groups as one without
BLOCK = 16  # channels that are repeated together: blocks of them are addresses on many devices
LOW, HIGH = -128, 127


def split_layers(graph: Graph) -> Graph:
    """Gives layers integers where one int8 product isn't enough for them.

    before: y = Q(LeakyRelu(Conv2d(x, w)))       after: y = max(Q(Conv2d(x, w)), Q(Conv2d(x, αw)))
    before: y = Q(Conv2d(x, DQ(w, zero 100)))    after: y = Q(Conv2d(QConcat(x, x), DQ([w', w"])))

    Both are exact: rounding is monotone, and w' and w" add up to w - 100. Of the data's channels
    those are repeated whose weights need it, in whole blocks.
    """
    return rewrite(graph, _with_leak, _in_bytes)


def _with_leak(node: ops.Unary, editor: Editor) -> Made:
    """The greater of a layer and the same one times the slope of negative numbers."""
    layer, end = editor.own_maker(node.data, FloatProducts), _end(node, editor)
    if node.function != "leaky_relu" or layer is None or end is None or not 0 < node.alpha < 1:
        return None
    if scaled_weights(layer, editor) is None or int8_source(layer.inputs[0], editor) is None:
        return None
    if layer.bias is not None and value_of(layer.bias, editor) is None:
        return None
    slopes = np.full(editor.shape(layer.weight)[0], node.alpha, np.float32)
    weight, leaking = times(layer, slopes, np.zeros_like(slopes), editor)
    name = editor.like(f"{node.name}.leaking", editor.shape(node.output), node.output)
    leaking = replace(leaking.writing(name), name=name)
    editor.erase(layer)
    a, first = _rounded(layer, end, editor)
    b, second = _rounded(leaking, end, editor)
    most = ops.Binary(name=node.name, output=node.output, a=a, b=b, function="max")
    return layer, *first, weight, leaking, *second, most


def _rounded(layer: Node, end: ops.Quantize, editor: Editor) -> tuple[str, Sequence[Node]]:
    """A layer's result rounded to the integers of a quantization, and the nodes that make it."""
    bits = editor.tensor(f"{layer.output}.bits", editor.tensors[end.output])
    real = editor.like(f"{layer.output}.rounded", editor.shape(layer.output), layer.output)
    scale, zero = end.scale, end.zero_point
    return real, (
        ops.Quantize(name=bits, output=bits, data=layer.output, scale=scale, zero_point=zero),
        ops.Dequantize(name=real, output=real, data=bits, scale=scale, zero_point=zero),
    )


def _in_bytes(node: FloatProducts, editor: Editor) -> Made:
    """The layer of data with some channels repeated, and of weights that add up to its own."""
    weights, source = scaled_weights(node, editor), int8_source(node.inputs[0], editor)
    if weights is None or source is None or _end(node, editor) is None:
        return None
    array = editor.constants[weights.data].astype(np.int64)
    centered = array - np.reshape(weights.zero_point, (-1, *(1,) * (array.ndim - 1)))
    if centered.min() >= LOW and centered.max() <= HIGH:
        return None
    layer, whole = node.whole(centered)
    if whole.size > MOST_WEIGHTS:
        return None
    channels = editor.shape(source.data)[1]
    places, parts = zip(*_parts(whole, channels), strict=True)
    made, names = list[Node](), list[str]()
    for number, some in enumerate(places):
        taken = _taken(f"{node.name}.channels{number}", source.data, some, editor)
        made += [taken] if taken else []
        names.append(taken.output if taken else source.data)
    integers = editor.constant(f"{weights.data}.parts", np.concatenate(parts, 1).astype(np.int8))
    weight = editor.tensor(f"{node.weight}.parts", TensorType(editor.shape(integers), "float32"))
    none = (0,) * len(weights.scale)
    n, _, *image = editor.shape(source.data)
    shape = n, sum(map(len, places)), *image
    wide = editor.like(f"{node.name}.repeated", shape, source.data)
    real = editor.like(f"{wide}.real", shape, node.inputs[0])
    return (
        *made,
        joined_integers(wide, names, 1, quant_of(source)),
        replace(source, name=real, output=real, data=wide),
        replace(weights, name=weight, output=weight, data=integers, zero_point=none),
        replace(layer, data=real, weight=weight),
    )


def _parts(weights: Array, channels: int) -> Iterator[tuple[Array, Array]]:
    """Weights within a byte that add up to some, each with the channels that it is for."""
    rest, some = weights, np.arange(channels)
    while len(some):
        part = np.clip(rest, LOW, HIGH)
        yield some, part
        by_channel = (rest - part).reshape(len(rest), len(some), -1)
        used = by_channel.any(axis=(0, 2))
        kept = np.isin(some // BLOCK, some[used] // BLOCK)
        rest = by_channel[:, kept].reshape(len(rest), -1, *rest.shape[2:])
        some = some[kept]


def _taken(hint: str, data: str, channels: Array, editor: Editor) -> ops.QTake | None:
    """The node that takes some channels; None where they are all there are."""
    n, count, *image = editor.shape(data)
    if len(channels) == count:
        return None
    shape = n, len(channels), *image
    tables = range(n), channels, *map(range, image)
    name = editor.like(hint, shape, data)
    places = tuple(int(place) for table in tables for place in table)
    return ops.QTake(name=name, output=name, data=data, shape=shape, places=places, fill=0.0)


def _end(node: Node, editor: Editor) -> ops.Quantize | None:
    """The Quantize of one scale that alone reads a node's result, behind limits at most."""
    while limit := editor.own_reader(node.output, LIMITS):
        node = limit
    return quantizing(node, editor)
