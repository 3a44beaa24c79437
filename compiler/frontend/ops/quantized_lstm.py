"""com.microsoft's DynamicQuantizeLSTM: an LSTM that quantizes what it multiplies, step by step.

Weights are int8 or uint8, with scales and zero points for each direction or each column. The data
of all steps are quantized at once, the state at every step, as onnxruntime does
(``contrib_ops/cpu/quantization/dynamic_quantize_lstm.cc``): to uint8, with one scale and one zero
point from the smallest and the largest element and 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.ops.bytes import byte_product
from vdla.compiler.frontend.ops.recurrent import Layer, unroll
from vdla.compiler.graph.types import Array

MICROSOFT = "com.microsoft"
LARGEST = 255  # a uint8


@dataclass(frozen=True)
class Weights:
    """[K, 4 * H] bytes with their zero points and scales, one or 4 * H of each."""

    values: str
    zero: str
    scale: str

    def product(self, make: Maker, data: str) -> str:
        """[M, K] floats times the weights, quantized before: [M, 4 * H] floats."""
        scale, zero, quantized = _quantized(make, data)
        total = byte_product(make, (quantized, zero), (self.values, self.zero))
        return make.binary(
            "mul", make.cast(total, "float32"), make.binary("mul", scale, self.scale)
        )


def _quantized(make: Maker, data: str) -> tuple[str, str, str]:
    """The scale [1] and the zero point [1] of a matrix, and its elements as uint8."""
    axes = range(len(make.shape(data)))
    low, high = (
        make.binary(side, make.reshape(make.reduce(side, data, axes), (1,)), 0.0)
        for side in ("min", "max")
    )
    width = make.binary("sub", high, low)
    none = make.binary("eq", width, 0.0)
    scale = make.where(none, make.like([1.0], width), make.binary("div", width, float(LARGEST)))
    start = make.unary("round", make.binary("div", make.unary("neg", low), scale))
    zero = _limited(make, start)
    steps = make.unary("round", make.binary("div", data, scale))
    values = _limited(make, make.binary("add", steps, zero))
    return scale, make.cast(zero, "uint8"), make.cast(values, "uint8")


def _limited(make: Maker, data: str) -> str:
    return make.binary("min", make.binary("max", data, 0.0), float(LARGEST))


@dataclass(frozen=True)
class QuantizedLayer(Layer):
    """A layer whose state is quantized before it is multiplied."""

    quantized: Weights | None = None

    def states(self, state: str, index: int = 0, count: int | None = None) -> str:
        """The state times its weights, of all gates."""
        assert self.quantized is not None
        return self.quantized.product(self.make, state)


@converts("DynamicQuantizeLSTM", domain=MICROSOFT)
def _quantized_lstm(view: OnnxNode) -> None:
    view.real_dtype()
    unroll(view, "LSTM", _layer)


def _layer(view: OnnxNode, make: Maker, data: str, number: int, functions: Sequence[str]) -> Layer:
    """A direction's tensors; both biases are added to what the data make."""
    steps, batch, size = make.shape(data)
    sides = [_weights(view, make, index, number) for index in (1, 2)]
    width = make.shape(sides[1].values)[1]
    hidden = width // 4
    inputs = sides[0].product(make, make.reshape(data, (steps * batch, size)))
    if view.optional(3) is not None:
        both = make.reshape(make.along(view.operand(3), 0, [number]), (2, width))
        bias = make.reduce("sum", both, [0], keep=False)
        inputs = make.binary("add", inputs, bias)
    peepholes = None
    if view.optional(7) is not None:
        peepholes = make.reshape(make.along(view.operand(7), 0, [number]), (3 * hidden,))
    return QuantizedLayer(
        make,
        make.reshape(inputs, (steps, batch, width)),
        sides[1].values,
        None,
        peepholes,
        functions,
        hidden,
        quantized=sides[1],
    )


def _weights(view: OnnxNode, make: Maker, index: int, number: int) -> Weights:
    """A direction's weights; their scales and zero points are two and three operands behind the
    peepholes."""
    what = ("data", "state")[index - 1]
    values = view.constant(index, f"matrix of weights of the {what}")[number]
    place = 8 if index == 1 else 10
    scale, zero = (_column(view, place + n, number, values) for n in (0, 1))
    return Weights(
        make.constant(values, str(values.dtype)),
        make.constant(zero, str(values.dtype)),
        make.constant(scale, "float32"),
    )


def _column(view: OnnxNode, index: int, number: int, values: Array) -> Array:
    """A direction's scales or zero points; 0 where there are none."""
    if view.optional(index) is None:
        return np.zeros(1, values.dtype)
    whole = view.constant(index, "scale or zero point of the weights")
    sides = view.shape(1)[0]
    if whole.size not in (sides, sides * values.shape[1]):
        expected = f"{sides} or {sides * values.shape[1]} scales and zero points of the weights"
        raise view.error(expected, whole.size)
    return np.asarray(whole.reshape(sides, -1)[number])
