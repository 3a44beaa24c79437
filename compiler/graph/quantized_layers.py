"""Layers of products whose weights are constant integers, with scales by output channel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.products import FloatProducts
from vdla.compiler.graph.types import Array

LIMITS = (ops.Relu, ops.Clip)  # that may stand between a layer and its quantization


def scaled_weights(layer: FloatProducts, around: Neighbours) -> ops.Dequantize | None:
    """The Dequantize of a layer's weights; None where they are no such integers."""
    source = around.maker(layer.weight, ops.Dequantize)
    if source is None or source.axis not in (None, 0) or source.data not in around.constants:
        return None
    return source


def value_of(name: str, around: Neighbours) -> Array | None:
    """A constant's value, or that of what integers that are one stand for."""
    source = around.maker(name, ops.Dequantize)
    if source is None:
        return around.constants.get(name)
    array = around.constants.get(source.data)
    return None if array is None else source.evaluate([array], around.tensors[name])


def times(
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
        values = value_of(bias, editor) * factor + offset if bias else offset
        bias = editor.constant(f"{own}.bias", values.astype(np.float32))
    return weight, replace(layer, weight=own, bias=bias)
