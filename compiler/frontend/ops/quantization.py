"""Quantize and Dequantize."""

from __future__ import annotations

from typing import Any

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops


@converts("QuantizeLinear")
def _quantize(view: OnnxNode) -> None:
    params = _quant_params(view, "uint8")
    dtype = params.pop("dtype")
    if dtype not in ("int8", "uint8"):
        raise view.unsupported("an int8 or uint8 result", dtype)
    node = ops.Quantize(name=view.name, output=view.output, data=view.operand(0), **params)
    view.draft.emit(node, dtype)


@converts("DequantizeLinear")
def _dequantize(view: OnnxNode) -> None:
    data = view.draft.tensors[view.operand(0)]
    params = _quant_params(view, data.dtype)
    params.pop("dtype")
    if data.dtype not in ("int8", "uint8", "int32"):
        raise view.unsupported("int8, uint8 or int32 data", data.dtype)
    node = ops.Dequantize(name=view.name, output=view.output, data=view.operand(0), **params)
    view.draft.emit(node, "float32")


def _quant_params(view: OnnxNode, dtype: str) -> dict[str, Any]:
    if view.integer("block_size", 0):
        raise view.unsupported("one scale per tensor or per channel", "blocks of scales")
    scale = view.constant(1, "scale")
    if scale.dtype != np.float32:
        raise view.unsupported("a float32 scale", scale.dtype)
    scale = scale.reshape(-1)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise view.error(
            "positive finite scales", f"{scale[~(np.isfinite(scale) & (scale > 0))][0]:g}"
        )
    if view.optional(2) is None:
        zero = np.zeros(scale.shape, dtype)
    else:
        zero = view.constant(2, "zero point").reshape(-1)
        if zero.shape != scale.shape:
            raise view.error(f"{scale.size} zero points", zero.size)
    axis = None
    if scale.size > 1:
        shape = view.shape(0)
        axis = view.integer("axis", 1) % max(len(shape), 1)
        if shape[axis] != scale.size:
            raise view.error(f"{shape[axis]} scales along axis {axis}", scale.size)
    return {
        "scale": tuple(float(s) for s in scale),
        "zero_point": tuple(int(z) for z in zero),
        "axis": axis,
        "dtype": str(zero.dtype),
    }
