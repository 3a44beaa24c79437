"""Weights of 4 bits in groups of inputs: ``weight ≈ scale[o] · factor[o, group] · code``.

A factor is a whole number from 1 to 15, so that ``factor · code`` is an int8: what reads weights
with one scale for each output channel reads these, too, with the same numbers. In a file the codes
are INT4, and the product of scale and factor is the scale of a block of DequantizeLinear. A group
is so many input channels at one tap of a window. Layers of fewer input channels have one scale for
each output channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.graph.types import Array
from vdla.compiler.models.layers import Layer, layers_of
from vdla.compiler.models.rounding import (
    LayerInputs,
    Moments,
    Progress,
    best_scales,
    rounded_by,
)

MOST_FACTOR = 15
MASK = 0xFFFFFFFF  # of a float32's bits
LIMITS = (-8, 7)
BLOCKS_OPSET = 21  # the first whose DequantizeLinear has blocks and INT4


def round_in_groups(
    quantized: onnx.ModelProto,
    floats: onnx.ModelProto,
    size: int,
    inputs: LayerInputs | None = None,
    progress: Progress = lambda what, done, total: None,
) -> int:
    """Gives convolutions and dense layers weights of 4 bits in groups, in place; gives how many.

    Args:
        quantized: a QDQ network, of opset 21 or more, whose int8 weights have one scale for each
            output channel.
        floats: the network before, whose nodes have the same names.
        size: input channels of a group.
        inputs: what the floats' layers read, by which weights are rounded (GPTQ); None rounds to
            the nearest.
        progress: is told (what, done, of).
    """
    layers = layers_of(quantized, floats)
    pairs = inputs.of(layers) if inputs else ((layer, None) for layer in layers)
    for number, (layer, moments) in enumerate(pairs):
        _Grouped.of(layer, size, moments).write(quantized)
        progress("rounding", number + 1, len(layers))
    return len(layers)


@dataclass(frozen=True)
class _Grouped:
    """A layer's codes [groups, outputs, inputs], its ``units``, a scale for each output channel,
    and scales of blocks of ``size`` input channels; the units again where ``size`` is 0."""

    layer: Layer
    codes: Array
    units: Array
    scales: Array
    size: int

    @classmethod
    def of(cls, layer: Layer, size: int, inputs: Moments | None) -> _Grouped:
        """The codes and scales of a layer that lose least."""
        rows = layer.rows
        weights = inputs.powers if inputs else np.ones(rows.shape[::2])
        taps = prod(layer.floats.shape[2:]) if layer.node.op_type == "Conv" else 1
        channels = rows.shape[2] // taps
        if channels < size:
            scales = best_scales(rows, weights, LIMITS)[..., None]
            codes = rounded_by(rows, np.broadcast_to(scales, rows.shape), inputs, LIMITS)
            return cls(layer, codes, scales, scales, 0)
        place = np.arange(rows.shape[2])
        group_of = place // taps // size * taps + place % taps
        own = np.stack(
            [
                best_scales(rows[..., group_of == group], weights[:, group_of == group], LIMITS)
                for group in range(group_of.max() + 1)
            ],
            axis=-1,
        )
        scale = own.max(-1, keepdims=True) / MOST_FACTOR
        factors = np.clip(np.rint(own / scale), 1, MOST_FACTOR)
        scale = _short(scale)
        codes = rounded_by(rows, (scale * factors)[..., group_of], inputs, LIMITS)
        return cls(layer, codes, scale, scale * factors, size)

    def write(self, model: onnx.ModelProto) -> None:
        """Stores the codes as INT4, and the scales of their blocks."""
        layer = self.layer
        if layer.by_channel:
            layer.move_bias(self.units.ravel() / layer.scales.ravel())
        codes = layer.as_weight(self.codes)
        layer.codes.CopyFrom(
            helper.make_tensor(
                layer.codes.name, TensorProto.INT4, codes.shape, codes.astype(np.int8).ravel()
            )
        )
        scales = layer.as_scales(self.scales) if self.size else self.scales.reshape(-1)
        scales = np.ascontiguousarray(scales, np.float32)
        layer.scale.CopyFrom(numpy_helper.from_array(scales, layer.scale.name))
        reader = next(n for n in model.graph.node if n.input and n.input[0] == layer.codes.name)
        zeros = [t for t in model.graph.initializer if t.name in reader.input[2:]]
        for zero in zeros:
            model.graph.initializer.remove(zero)
        del reader.input[2:], reader.attribute[:]
        axis = layer.input_axis if self.size else 1 - layer.input_axis
        reader.attribute.append(helper.make_attribute("axis", axis))
        if self.size:
            reader.attribute.append(helper.make_attribute("block_size", self.size))


def _short(scales: Array) -> Array:
    """Scales whose products with factors are exact in float32: with the last bits of their
    mantissas 0."""
    bits = np.ascontiguousarray(scales, np.float32).view(np.uint32) & np.uint32(~MOST_FACTOR & MASK)
    return np.asarray(bits.view(np.float32), np.float64)
