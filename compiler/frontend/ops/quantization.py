"""Quantize and Dequantize."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops


@converts("QuantizeLinear")
def _quantize(view: OnnxNode) -> None:
    if not _plain(view):
        _quantize_by_parts(view)
        return
    params = _quant_params(view, "uint8")
    dtype = params.pop("dtype")
    if dtype not in ("int8", "uint8"):
        raise view.unsupported("an int8 or uint8 result", dtype)
    node = ops.Quantize(name=view.name, output=view.output, data=view.operand(0), **params)
    view.draft.emit(node, dtype)


@converts("DequantizeLinear")
def _dequantize(view: OnnxNode) -> None:
    if not _plain(view):
        _dequantize_by_parts(view)
        return
    data = view.draft.tensors[view.operand(0)]
    params = _quant_params(view, data.dtype)
    params.pop("dtype")
    if data.dtype not in ("int8", "uint8", "int32"):
        raise view.unsupported("int8, uint8 or int32 data", data.dtype)
    node = ops.Dequantize(name=view.name, output=view.output, data=view.operand(0), **params)
    view.draft.emit(node, "float32")


def _plain(view: OnnxNode) -> bool:
    """Whether scales and zero points are constants, none of them of a block."""
    names = [view.optional(i) for i in (1, 2)]
    known = all(name is None or view.draft.known(name) is not None for name in names)
    return known and not view.integer("block_size", 0)


def _quantize_by_parts(view: OnnxNode) -> None:
    """``saturate(round_half_even(x / scale) + zero_point)``."""
    make, dtype = Maker(view), view.dtype(2) if view.optional(2) else "uint8"
    if "output_dtype" in view.attributes and not view.optional(2):
        dtype = view.draft.dtype(view.integer("output_dtype", 0)) or dtype
    if view.real_dtype() != "float32" or dtype not in ("int8", "uint8", "int16", "uint16"):
        raise view.unsupported("float32 data and a result of 8 or 16 bits", dtype)
    steps = make.unary("round", make.binary("div", view.operand(0), _spread(view, make, 1)))
    if view.optional(2) is not None:
        steps = make.binary("add", steps, make.cast(_spread(view, make, 2), "float32"))
    limits = np.iinfo(dtype)
    limited = make.binary("min", make.binary("max", steps, float(limits.min)), float(limits.max))
    make.result(make.cast(limited, dtype))


def _dequantize_by_parts(view: OnnxNode) -> None:
    """``(x - zero_point) * scale``."""
    make, dtype = Maker(view), view.dtype(1)
    if dtype != "float32" or "float" in view.dtype(0):
        raise view.unsupported("integers and float32 scales", f"{view.dtype(0)} and {dtype}")
    data = make.cast(view.operand(0), "int64")
    if view.optional(2) is not None:
        data = make.binary("sub", data, make.cast(_spread(view, make, 2), "int64"))
    make.result(make.binary("mul", make.cast(data, "float32"), _spread(view, make, 1)))


def _spread(view: OnnxNode, make: Maker, index: int) -> str:
    """Scales or zero points, to broadcast against the data: one, one per channel or per block."""
    name, shape, size = view.operand(index), view.shape(0), view.integer("block_size", 0)
    rank, axis = len(shape), view.axis(view.integer("axis", 1), max(len(shape), 2))
    if size:
        blocks = [n // size for n in range(shape[axis])]
        return make.along(name, axis, blocks)
    if prod(make.shape(name)) == 1:
        return make.reshape(name, ())
    return make.reshape(name, (make.shape(name)[0], *(1,) * (rank - axis - 1)))


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
