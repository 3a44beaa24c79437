"""Layers of products in the one form that integers have, in whichever one a quantizer writes them.

A layer of a file may have its bias or its normalization in a node of its own, a factor in front of
its quantization, or a scale for each channel of its data. All of it is the same arithmetic on
floats.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.numbers import quantize
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.quantized_layers import LIMITS, scaled_weights, times, value_of
from vdla.compiler.graph.types import Shape


def unify_layers(graph: Graph) -> Graph:
    """Gives layers of quantized weights one form.

    before: y = Add(Dense(x, DQ(w)), b)              after: y = Dense(x, DQ(w), b)
    before: y = Relu(Reshape(Dense(x, DQ(w))))       after: y = Reshape(Relu(Dense(x, DQ(w))))
    before: y = Q(Mul(AvgPool(x), 0.98), s)          after: y = Q(AvgPool(x), s / 0.98)
    before: y = BatchNorm(Conv2d(x, DQ(w, s), b), f, o)    after: y = Conv2d(x, DQ(w, s·f), b·f + o)
    before: y = mean of each channel's means of tiles      after: y = mean of each channel
    before: DQ(Q(x, t of each channel)), read by depthwise layers
    after:  DQ(Q(BatchNorm(x, max(t) / t), max(t))), read by these times t / max(t)

    Results are the file's, but for the order of its sums and products in floats.
    """
    return rewrite(
        graph, _with_bias, _before_moves, _with_factor, _whole_mean, _normalized, _with_one_scale
    )


# Biases and factors ------------------------------------------------------------------------------


def _with_bias(node: ops.Add, editor: Editor) -> Made:
    """The layer, with what is added to it as its bias."""
    for data, other in ((node.a, node.b), (node.b, node.a)):
        reshape = editor.own_maker(data, ops.Reshape)
        layer = editor.own_maker(reshape.data if reshape else data, FloatProducts)
        shape = editor.shape(node.output)
        if layer is None or layer.bias is not None or editor.shape(data) != shape:
            continue
        count = editor.shape(layer.output)[1]
        axis = len(shape) - 1 if reshape else 1
        if scaled_weights(layer, editor) is None or shape[axis] != count:
            continue
        bias = _vector(other, axis, shape, editor)
        if bias is None:
            continue
        whole = replace(layer, bias=bias)
        editor.erase(layer)
        if reshape is None:
            return whole.writing(node.output)
        editor.erase(reshape)
        return whole, reshape.writing(node.output)
    return None


def _vector(name: str, axis: int, shape: Shape, editor: Editor) -> str | None:
    """A constant that differs along one axis of a shape alone as one number for each place there;
    one that integers stand for has to be that already."""
    count, actual = shape[axis], editor.shape(name)
    lay = (1,) * (len(shape) - len(actual)) + actual
    if len(lay) > len(shape) or lay != tuple(count if n == axis else 1 for n in range(len(shape))):
        return None
    source = editor.maker(name, ops.Dequantize)
    if source is not None:
        return name if source.data in editor.constants and actual == (count,) else None
    if name not in editor.constants:
        return None
    return editor.constant(f"{name}.bias", editor.constants[name].reshape(-1))


def _before_moves(node: ops.Relu | ops.Clip | ops.Unary, editor: Editor) -> Made:
    """A function of each element of a layer's result before the move of elements behind it."""
    reshape = editor.own_maker(node.data, ops.Reshape)
    move = reshape or editor.own_maker(node.data, ops.Transpose)
    layer = editor.own_maker(move.data, FloatProducts) if move else None
    if move is None or layer is None or scaled_weights(layer, editor) is None:
        return None
    early = editor.like(f"{node.output}.early", editor.shape(layer.output), node.output)
    editor.erase(move)
    return replace(node, data=layer.output, output=early), replace(
        move, data=early, output=node.output
    )


def _with_factor(node: ops.Quantize, editor: Editor) -> Made:
    """The quantization of what a positive number scales, by a scale that has it."""
    product = editor.own_maker(node.data, ops.Binary)
    if node.axis is not None or product is None or product.function not in ("mul", "div"):
        return None
    data, name = product.a, product.b
    if product.function == "mul" and data in editor.constants:
        data, name = name, data
    value, maker = editor.constants.get(name), editor.maker(data, Node)
    if value is None or value.size != 1 or maker is None or maker.ELEMENTWISE:
        return None
    factor = float(value.reshape(-1)[0])
    factor = 1 / factor if product.function == "div" and factor else factor
    scale = float(np.float32(node.scale[0] / factor)) if factor > 0 else 0.0
    fits = editor.shape(data) == editor.shape(node.data) and 0 < scale < np.inf
    if not fits or isinstance(maker, ops.Dequantize):
        return None
    return replace(node, data=data, scale=(scale,))


def _whole_mean(node: ops.AvgPool, editor: Editor) -> Made:
    """The mean of whole images, where a node has that of the means of tiles without gaps."""
    tiles = editor.own_maker(node.data, ops.AvgPool)
    if tiles is None or tiles.kernel != tiles.strides or any(tiles.pads) or any(node.pads):
        return None
    (_, _, h, w), small = editor.shape(tiles.data), editor.shape(node.data)[2:]
    rows, columns = tiles.kernel
    if node.kernel != small or (h, w) != (small[0] * rows, small[1] * columns):
        return None
    editor.erase(tiles)
    return replace(node, data=tiles.data, kernel=(h, w))


# Scales of each channel --------------------------------------------------------------------------


def _normalized(node: ops.BatchNorm, editor: Editor) -> Made:
    """The layer before a normalization, which has its factors and offsets."""
    layer = editor.own_maker(node.data, FloatProducts)
    if layer is None or scaled_weights(layer, editor) is None:
        return None
    if layer.bias is not None and value_of(layer.bias, editor) is None:
        return None
    factor, offset = editor.constants[node.factor], editor.constants[node.offset]
    *made, whole = times(layer, factor, offset, editor)
    editor.erase(layer)
    return *made, whole.writing(node.output)


def _with_one_scale(node: ops.Quantize, editor: Editor) -> Made:
    """The quantization by the largest of its scales, of what is scaled for it; the depthwise layers
    behind it, which alone read it, have the rest."""
    back = editor.own_reader(node.output, ops.Dequantize)
    if node.axis != 1 or back is None or len({*node.zero_point}) > 1:
        return None
    same = (back.scale, back.zero_point, back.axis) == (node.scale, node.zero_point, node.axis)
    behind = editor.readers_of(back.output, FloatProducts)
    if not same or not behind or len(behind) < len(editor.readers(back.output)):
        return None
    alone = all(_is_depthwise(each, back.output, editor) for each in behind)
    if not alone or back.output in editor.outputs:
        return None
    scale = np.array(node.scale, np.float32)
    most = np.float32(scale.max())
    for each in behind:
        editor.replace(each, *times(each, scale / most, None, editor))
    one, zero = (float(most),), node.zero_point[:1]
    editor.replace(back, replace(back, scale=one, zero_point=zero, axis=None))
    data, positive = _before_limits(node, editor)
    factor, offset = (
        editor.constant(f"{node.name}.{what}", values)
        for what, values in (("factor", most / scale), ("offset", np.zeros_like(scale)))
    )
    name = editor.like(f"{node.name}.scaled", editor.shape(data), data)
    made: list[Node] = [
        ops.BatchNorm(name=name, output=name, data=data, factor=factor, offset=offset)
    ]
    if positive:
        name = editor.like(f"{node.name}.positive", editor.shape(data), data)
        made.append(ops.Relu(name=name, output=name, data=made[0].output))
    return *made, replace(node, data=name, scale=one, zero_point=zero, axis=None)


def _before_limits(node: ops.Quantize, editor: Editor) -> tuple[str, bool]:
    """The tensor that a node quantizes before limits that its integers have anyway, and whether one
    of them is 0, which a factor doesn't move; these limits are dropped."""
    data, positive, kind = node.data, False, editor.tensors[node.output].dtype
    ends, scale, zero = np.iinfo(kind), np.array(node.scale), np.array(node.zero_point)
    while limit := editor.own_maker(data, LIMITS):
        low, high = (
            quantize(np.full(scale.shape, bound, np.float32), scale, zero, kind)
            for bound in limit.bounds
        )
        free = bool((low == ends.min).all())
        if not (high == ends.max).all() or not (free or limit.bounds[0] == 0):
            break
        positive, data = positive or not free, limit.inputs[0]
        editor.erase(limit)
    return data, positive


def _is_depthwise(node: FloatProducts, data: str, editor: Editor) -> bool:
    """Whether a node is a depthwise layer of some data, of known weights."""
    alone = node.inputs[0] == data and node.is_depthwise([editor.shape(n) for n in node.inputs])
    return alone and scaled_weights(node, editor) is not None
