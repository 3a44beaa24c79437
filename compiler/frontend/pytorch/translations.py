"""ONNX of PyTorch's quantizers, in opset 21.

The operators are those of ``torch.ops.quantized_decomposed``, which PT2E leaves in a program.
onnxscript has translations of its own; these also take zero points that are tensors, and keep to a
range that is less than that of the dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # makes the operators
from onnxscript import ir, opset21

OPSET = 21
NOTHING = -1  # the dtype that isn't given


def quantize_per_tensor(
    x: ir.Value, scale: ir.Value, zero_point: ir.Value, low: int, high: int, dtype: int
) -> ir.Value:
    """Integers of one scale and zero point, from ``low`` to ``high``."""
    step, zero = _real(scale), _whole(zero_point, dtype)
    if isinstance(scale, float) and isinstance(zero_point, int) and _is_less(low, high, dtype):
        # Limits of the floats give the same integers, and are an activation to what follows.
        ends = (np.float32(end - zero_point) * np.float32(scale) for end in (low, high))
        x = opset21.Clip(x, *(opset21.Constant(value=ir.tensor(end)) for end in ends))
        return opset21.QuantizeLinear(x, step, zero)
    return _limited(opset21.QuantizeLinear(x, step, zero), low, high, dtype)


def dequantize_per_tensor(
    x: ir.Value, scale: ir.Value, zero_point: ir.Value, low: int, high: int, dtype: int,
    out_dtype: int = NOTHING,
) -> ir.Value:  # fmt: skip
    """Floats of integers of one scale and zero point."""
    result = opset21.DequantizeLinear(x, _real(scale), _whole(zero_point, dtype))
    return _cast(result, out_dtype)


def quantize_per_channel(
    x: ir.Value, scales: ir.Value, zero_points: ir.Value, axis: int, low: int, high: int, dtype: int
) -> ir.Value:
    """Integers of a scale and a zero point for each index of an axis, from ``low`` to ``high``."""
    step, zero = _real(scales), _whole(zero_points, dtype)
    return _limited(opset21.QuantizeLinear(x, step, zero, axis=axis), low, high, dtype)


def dequantize_per_channel(
    x: ir.Value, scales: ir.Value, zero_points: ir.Value, axis: int, *others: int, **more: int
) -> ir.Value:
    """Floats of integers with a scale and a zero point for each index of an axis; ``others`` are
    the ends of their range and their dtype, and ``more`` the floats' ``out_dtype``."""
    dtype, out_dtype = others[2], more.get("out_dtype", NOTHING)
    step = _real(scales)
    zero = () if zero_points is None else (_whole(zero_points, dtype),)
    return _cast(opset21.DequantizeLinear(x, step, *zero, axis=axis), out_dtype)


def _real(scale: ir.Value) -> ir.Value:
    """Scales as float32; PT2E has them as float64."""
    if isinstance(scale, float | int):
        return opset21.Constant(value=ir.tensor(np.float32(scale)))
    return opset21.Cast(scale, to=ir.DataType.FLOAT)


def _whole(zero_point: ir.Value, dtype: int) -> ir.Value:
    """Zero points in the dtype of the integers; PT2E has them as int64."""
    if isinstance(zero_point, int):
        kind = ir.DataType(dtype).numpy()
        return opset21.Constant(value=ir.tensor(np.asarray(zero_point, kind)))
    return opset21.Cast(zero_point, to=dtype)


def _limited(integers: ir.Value, low: int, high: int, dtype: int) -> ir.Value:
    """Integers within a range, where it is less than that of their dtype."""
    if not _is_less(low, high, dtype):
        return integers
    kind = np.dtype(ir.DataType(dtype).numpy())
    ends = (opset21.Constant(value=ir.tensor(np.asarray(end, kind))) for end in (low, high))
    return opset21.Clip(integers, *ends)


def _is_less(low: int, high: int, dtype: int) -> bool:
    """Whether a range leaves out integers of a dtype."""
    limits = np.iinfo(ir.DataType(dtype).numpy())
    return bool(low > limits.min or high < limits.max)


def _cast(x: ir.Value, dtype: int | None) -> ir.Value:
    return x if dtype in (None, NOTHING) else opset21.Cast(x, to=dtype)


def _overloads(operator: Any) -> list[Any]:
    """The forms of an operator, of numbers and of tensors."""
    return [getattr(operator, name) for name in operator.overloads()]


OPERATORS: dict[Callable[..., Any], Callable[..., ir.Value]] = {
    overload: translation
    for translation in (
        quantize_per_tensor,
        dequantize_per_tensor,
        quantize_per_channel,
        dequantize_per_channel,
    )
    for overload in _overloads(getattr(torch.ops.quantized_decomposed, translation.__name__))
}
