"""Layers of products in the one form that integers have, in whichever one a quantizer writes them.

A layer of a file may have its bias in a node of its own, a scale for each channel of its data, or
weights that int8 can't hold less their zero point. All of it is the same arithmetic on floats.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import int8_source, quantizing
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.numbers import quantize
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.types import Array, Shape, TensorType

LIMITS = (ops.Relu, ops.Clip)
MOST_WEIGHTS = 1 << 20  # of a layer of groups as one without


def unify_layers(graph: Graph) -> Graph:
    """Gives layers of quantized weights one form.

    before: y = Add(Dense(x, DQ(w)), b)             after: y = Dense(x, DQ(w), b)
    before: y = Q(Mul(AvgPool(x), 0.98), s)         after: y = Q(AvgPool(x), s / 0.98)
    before: y = Q(LeakyRelu(Conv2d(x, w, b)))       after: y = Q(max(Conv2d(x, w, b), Conv2d(x, αw, αb)))
    before: y = BatchNorm(Conv2d(x, DQ(w, s), b), f, o)    after: y = Conv2d(x, DQ(w, s·f), b·f + o)
    before: y = mean of each channel's means of tiles    after: y = mean of each channel
    before: y = Conv2d(x, DQ(w, zero 100))          after: y = Conv2d(Concat(x, x), DQ(w'))
    before: DQ(Q(x, t of each channel)), read by depthwise layers
    after:  DQ(Q(BatchNorm(x, max(t) / t), max(t))), read by these times t / max(t)

    Results are the file's, but for the order of its sums and products in floats.
    """
    return rewrite(
        graph,
        _with_bias,
        _with_factor,
        _normalized,
        _with_one_scale,
        _with_leak,
        _whole_mean,
        _in_bytes,
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
        axis = 1 if isinstance(layer, ops.Conv2d) else len(shape) - 1
        if _scaled_weights(layer, editor) is None or shape[axis] != count:
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
    image, small = editor.shape(tiles.data)[2:], editor.shape(node.data)[2:]
    even = all(a == b * k for a, b, k in zip(image, small, tiles.kernel, strict=True))
    if not even or node.kernel != small:
        return None
    editor.erase(tiles)
    return replace(node, data=tiles.data, kernel=image)


# Layers that become several ----------------------------------------------------------------------


def _with_leak(node: ops.Unary, editor: Editor) -> Made:
    """The greater of a layer and the same one times the slope of negative numbers."""
    layer, end = editor.own_maker(node.data, FloatProducts), quantizing(node, editor)
    if node.function != "leaky_relu" or layer is None or end is None or not 0 < node.alpha < 1:
        return None
    if layer.bias is not None and _value(layer.bias, editor) is None:
        return None
    if _scaled_weights(layer, editor) is None or int8_source(layer.inputs[0], editor) is None:
        return None
    slopes = np.full(editor.shape(layer.weight)[0], node.alpha, np.float32)
    parts = layer, *_times(layer, slopes, np.zeros_like(slopes), editor)
    made, real = list[Node](), list[str]()
    for part in parts:
        if not isinstance(part, FloatProducts):
            made.append(part)
            continue
        result = editor.like(f"{node.output}.{len(real)}", editor.shape(node.output), node.output)
        bits = editor.tensor(f"{result}.bits", editor.tensors[end.output])
        again = editor.like(f"{result}.real", editor.shape(node.output), node.output)
        quant = {"scale": end.scale, "zero_point": end.zero_point}
        name = layer.name if part is layer else result
        made.append(replace(part.writing(result), name=name))
        made.append(ops.Quantize(name=bits, output=bits, data=result, **quant))
        made.append(ops.Dequantize(name=again, output=again, data=bits, **quant))
        real.append(again)
    editor.erase(layer)
    a, b = real
    return [*made, ops.Binary(name=node.name, output=node.output, a=a, b=b, function="max")]


def _times(
    layer: FloatProducts, factor: Array, offset: Array | None, editor: Editor
) -> tuple[ops.Dequantize, FloatProducts]:
    """A layer times a factor, and plus an offset, for each output channel, behind its weights.

    Their integers are turned around bit by bit where the factor is negative, and nothing where it
    is 0. Without an offset the layer keeps its bias as it is.
    """
    source = editor.maker(layer.weight, ops.Dequantize)
    assert source is not None
    array, zeros = editor.constants[source.data], np.array(source.zero_point)
    column = factor.reshape(-1, *(1,) * (array.ndim - 1))
    zeros = np.broadcast_to(zeros, factor.shape).astype(array.dtype)
    spread = zeros.reshape(column.shape)
    turned = np.where(column < 0, np.bitwise_not(array), np.where(column == 0, spread, array))
    integers = source.data
    if not np.array_equal(turned, array):
        integers = editor.constant(f"{source.data}.turned", turned)
    scale = np.array(source.scale, np.float32) * np.where(factor, np.abs(factor), 1)
    own = editor.like(f"{layer.weight}.scaled", array.shape, layer.weight)
    weight = ops.Dequantize(
        name=own,
        output=own,
        data=integers,
        scale=tuple(float(s) for s in scale.astype(np.float32)),
        zero_point=tuple(int(z) for z in np.where(factor < 0, np.bitwise_not(zeros), zeros)),
        axis=0,
    )
    bias = layer.bias
    if offset is not None:
        values = _value(bias, editor) * factor + offset if bias else offset
        bias = editor.constant(f"{own}.bias", values.astype(np.float32))
    return weight, replace(layer, weight=own, bias=bias)


def _in_bytes(node: FloatProducts, editor: Editor) -> Made:
    """The layer of data that stand there several times, with weights that add up to its own."""
    source, data = _scaled_weights(node, editor), node.inputs[0]
    if source is None or int8_source(data, editor) is None or not _ends(node, editor):
        return None
    zeros = np.array(source.zero_point, np.int64)
    array = editor.constants[source.data].astype(np.int64)
    rest = _dense(array - zeros.reshape(-1, *(1,) * (array.ndim - 1)), node)
    if (
        array.dtype.kind != "i"
        or (rest.min() >= -128 and rest.max() <= 127)
        or rest.size > MOST_WEIGHTS
    ):
        return None
    parts: list[Array] = []
    while rest.any():
        parts.append(np.clip(rest, -128, 127))
        rest = rest - parts[-1]
    whole = np.concatenate(parts, axis=1).astype(np.int8)
    integers = editor.constant(f"{source.data}.parts", whole)
    weight = editor.tensor(f"{node.weight}.parts", TensorType(whole.shape, "float32"))
    n, channels, *image = editor.shape(data)
    wide = editor.like(f"{data}.repeated", (n, channels * len(parts), *image), data)
    made = replace(node, data=wide, weight=weight)
    none = (0,) * len(source.scale)
    return (
        replace(source, name=weight, output=weight, data=integers, zero_point=none),
        ops.Concat(name=wide, output=wide, parts=(data,) * len(parts), axis=1),
        replace(made, groups=1) if isinstance(made, ops.Conv2d) else made,
    )


def _dense(weight: Array, node: FloatProducts) -> Array:
    """Weights of a convolution of groups as those of one without: zeros between other groups."""
    groups = node.groups if isinstance(node, ops.Conv2d) else 1
    if groups == 1:
        return weight
    o, i, *kernel = weight.shape
    whole = np.zeros((o, i * groups, *kernel), weight.dtype)
    for group, rows in enumerate(np.split(np.arange(o), groups)):
        whole[rows, group * i : (group + 1) * i] = weight[rows]
    return whole


# Scales of each channel --------------------------------------------------------------------------


def _normalized(node: ops.BatchNorm, editor: Editor) -> Made:
    """The layer before a normalization, which has its factors and offsets."""
    layer = editor.own_maker(node.data, FloatProducts)
    if layer is None or _scaled_weights(layer, editor) is None:
        return None
    if layer.bias is not None and _value(layer.bias, editor) is None:
        return None
    factor, offset = editor.constants[node.factor], editor.constants[node.offset]
    *made, whole = _times(layer, factor, offset, editor)
    editor.erase(layer)
    return *made, whole.writing(node.output)


def _with_one_scale(node: ops.Quantize, editor: Editor) -> Made:
    """The quantization by the largest of its scales, of what is scaled for it; the depthwise layers
    behind it, which alone read it, have the rest."""
    back = editor.own_reader(node.output, ops.Dequantize)
    if node.axis != 1 or back is None or len({*node.zero_point}) > 1:
        return None
    same = (back.scale, back.zero_point, back.axis) == (node.scale, node.zero_point, node.axis)
    behind = editor.readers_of(back.output, ops.Conv2d)
    if not same or not behind or len(behind) < len(editor.readers(back.output)):
        return None
    alone = all(_is_depthwise(each, back.output, editor) for each in behind)
    if not alone or back.output in editor.outputs:
        return None
    scale = np.array(node.scale, np.float32)
    most = np.float32(scale.max())
    for each in behind:
        editor.replace(each, *_times(each, scale / most, None, editor))
    one = {"scale": (float(most),), "zero_point": node.zero_point[:1], "axis": None}
    editor.replace(back, replace(back, **one))
    data, limits = _before_limits(node, editor)
    factor, offset = (
        editor.constant(f"{node.name}.{what}", values)
        for what, values in (("factor", most / scale), ("offset", np.zeros_like(scale)))
    )
    name = editor.like(f"{node.name}.scaled", editor.shape(data), data)
    made: list[Node] = [
        ops.BatchNorm(name=name, output=name, data=data, factor=factor, offset=offset)
    ]
    if limits:
        name = editor.like(f"{node.name}.positive", editor.shape(data), data)
        made.append(ops.Relu(name=name, output=name, data=made[0].output))
    return *made, replace(node, data=name, **one)


def _before_limits(node: ops.Quantize, editor: Editor) -> tuple[str, bool]:
    """The tensor that a node quantizes before limits that its integers have anyway, and whether one
    of them is 0, which a factor doesn't move."""
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
    return data, positive


def _is_depthwise(node: Node, data: str, editor: Editor) -> bool:
    """Whether a node is a convolution of each channel of some data by itself, of known weights."""
    if not isinstance(node, ops.Conv2d) or node.data != data:
        return False
    alone = node.groups == editor.shape(data)[1] == editor.shape(node.weight)[0]
    return alone and _scaled_weights(node, editor) is not None


def _value(name: str, editor: Editor) -> Array | None:
    """A constant's value, or that of what integers that are one stand for."""
    source = editor.maker(name, ops.Dequantize)
    if source is None:
        return editor.constants.get(name)
    array = editor.constants.get(source.data)
    return None if array is None else source.evaluate([array], editor.tensors[name])


# Questions ---------------------------------------------------------------------------------------


def _scaled_weights(layer: FloatProducts, editor: Editor) -> ops.Dequantize | None:
    """The Dequantize of a layer's weights, constant integers with scales by output channel."""
    source = editor.maker(layer.weight, ops.Dequantize)
    if source is None or source.axis not in (None, 0) or source.data not in editor.constants:
        return None
    return source


def _ends(node: Node, editor: Editor) -> bool:
    """Whether one scale quantizes a node's result, behind limits at most."""
    while limit := editor.own_reader(node.output, LIMITS):
        node = limit
    return quantizing(node, editor) is not None
