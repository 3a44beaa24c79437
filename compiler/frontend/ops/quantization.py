"""Quantize and Dequantize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import MICROSOFT, OnnxNode
from vdla.compiler.frontend.ops.storage import decoded, encoded, limits
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.wide import Dequantize16, Quantize16
from vdla.compiler.graph.types import Array, TensorType
from vdla.runtime.dtypes import STORED, dtype_of

STORED_TYPES = frozenset(STORED)
BYTES = ("int8", "uint8")
SIXTEEN = ("int16", "uint16")
FEW_BITS = {"int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8"}  # and their bytes
FLOATS = ("float32", "float16", "bfloat16")  # of scales, and of what is dequantized
FLOAT = onnx.TensorProto.FLOAT
MOST_MULTIPLE = 15  # of a channel's unit, that the scale of a block of int4 may be
NEARLY_WHOLE = 1e-4
DEAD_SCALE = 2.0**-7  # of data that are all zeros, and have no other scale
RESULTS = ("int8", "uint8", "int16", "uint16", *STORED)  # what QuantizeLinear writes


@converts("QuantizeLinear")
@converts("QuantizeLinear", domain=MICROSOFT)
def _quantize(view: OnnxNode) -> None:
    dtype = _result_dtype(view)
    if view.integer("precision", FLOAT) not in (0, FLOAT):
        actual = view.draft.dtype(view.integer("precision", FLOAT))
        raise view.error("a precision of float32", actual)
    if (
        dtype in FEW_BITS
        and _plain(view)
        and (data := view.draft.known(view.operand(0))) is not None
    ):
        _quantize_constant(view, data, dtype)
        return
    wide = dtype in SIXTEEN and view.dtype(0) == "float32"
    if not _plain(view) or not (dtype in BYTES or wide) or view.dtype(0) in STORED_TYPES:
        _quantize_by_parts(view, dtype)
        return
    params = _quant_params(view, dtype)
    params.pop("dtype")
    if (odd := _odd_scale(params["scale"])) is not None:
        first = len(view.draft.nodes)
        _quantize_by_parts(view, dtype)
        _note(view, odd, first)
        return
    node: ops.Quantize | Quantize16
    if wide:
        low, high = limits(dtype)
        params |= {"low": int(low), "high": int(high)}
        node = Quantize16(name=view.name, output=view.output, data=view.operand(0), **params)
    else:
        node = ops.Quantize(name=view.name, output=view.output, data=view.operand(0), **params)
    if (data := view.draft.known(node.data)) is not None:  # weights that training quantized
        integers = node.evaluate([data], TensorType(data.shape, dtype))
        view.draft.add_constant(view.output, integers)
        return
    view.draft.emit(node, dtype)


def _quantize_constant(view: OnnxNode, data: Array, dtype: str) -> None:
    """Integers of few bits of a constant: those of a byte, limited."""
    params = _quant_params(view, FEW_BITS[dtype])
    params.pop("dtype")
    node = ops.Quantize(name=view.name, output=view.output, data=view.operand(0), **params)
    integers = node.evaluate([data], TensorType(data.shape, FEW_BITS[dtype]))
    view.draft.add_constant(view.output, np.clip(integers, *limits(dtype)).astype(dtype_of(dtype)))


@converts("DequantizeLinear")
@converts("DequantizeLinear", domain=MICROSOFT)
def _dequantize(view: OnnxNode) -> None:
    code = view.integer("output_dtype", 0)
    dtype = view.draft.dtype(code) if code else view.dtype(1)
    if dtype == "float32" and (folded := _folded_blocks(view)) is not None:
        view.draft.emit(folded, "float32")
        return
    name = _as_bytes(view)
    data = view.draft.tensors[name]
    if not _plain(view) or dtype != "float32" or STORED_TYPES & {data.dtype, view.dtype(1)}:
        _dequantize_by_parts(view, dtype)
        return
    if data.dtype in SIXTEEN:
        _dequantize16(view, data.dtype)
        return
    if data.dtype not in ("int8", "uint8", "int32"):
        raise view.unsupported("int8, uint8 or int32 data", data.dtype)
    params = _quant_params(view, data.dtype)
    params.pop("dtype")
    odd = _odd_scale(params["scale"])
    if odd is not None and name not in view.draft.constants:
        first = len(view.draft.nodes)
        _dequantize_by_parts(view, dtype)
        _note(view, odd, first)
        return
    node = ops.Dequantize(name=view.name, output=view.output, data=name, **params)
    view.draft.emit(_with_positive_scales(view, node), "float32")


def _folded_blocks(view: OnnxNode) -> ops.Dequantize | None:
    """A matrix or a window's weights of few bits in blocks, as int8 with a scale for each output
    channel: where a channel's scales are whole multiples of one number, by which integers stay
    int8. None elsewhere."""
    data, scale = view.draft.known(view.operand(0)), view.draft.known(view.operand(1))
    size, axis = view.integer("block_size", 0), view.integer("axis", 1)
    if not size or data is None or scale is None or view.optional(2) is not None:
        return None
    if view.dtype(0) not in FEW_BITS or axis not in (0, 1) or data.ndim < 2:
        return None
    rows = np.moveaxis(scale.astype(np.float64), 1 - axis, 0).reshape(data.shape[1 - axis], -1)
    units = _units(rows)
    if units is None:
        return None
    column = [1] * data.ndim
    column[1 - axis] = -1
    factors = np.rint(scale / units.reshape(column)).astype(np.int64)
    spread = np.repeat(factors, size, axis)
    whole = data.astype(np.int64) * np.take(spread, range(data.shape[axis]), axis)
    if np.abs(whole).max(initial=0) > 127:
        return None
    name = view.draft.add_constant(f"{view.name}.bytes", whole.astype(np.int8))
    return ops.Dequantize(
        name=view.name,
        output=view.output,
        data=name,
        scale=tuple(float(each) for each in units.astype(np.float32)),
        zero_point=(0,) * len(units),
        axis=1 - axis,
    )


def _units(rows: Array) -> Array | None:
    """The number of which each row's scales are the least whole multiples, up to MOST_MULTIPLE of
    it; None where some row has none."""
    result = np.zeros(len(rows))
    least = rows.min(1)
    if not (least > 0).all():
        return None
    for multiple in range(MOST_MULTIPLE, 0, -1):
        unit = least / multiple
        ratio = rows / unit[:, None]
        whole = np.abs(ratio - np.rint(ratio)).max(1) < NEARLY_WHOLE
        result = np.where(whole & (ratio.max(1) < MOST_MULTIPLE + 0.5), unit, result)
    return result if (result > 0).all() else None


def _as_bytes(view: OnnxNode) -> str:
    """The data of a node; a constant of few bits with a scale for each channel at most as bytes."""
    name = view.operand(0)
    dtype, data = view.dtype(0), view.draft.constants.get(name)
    if data is None or dtype not in FEW_BITS or not _plain(view):
        return name
    return view.draft.add_constant(f"{view.name}.bytes", data.astype(FEW_BITS[dtype]))


def _dequantize16(view: OnnxNode, dtype: str) -> None:
    """Data of 16 bits; by parts where a scale isn't positive or they are constants."""
    params = _quant_params(view, dtype)
    params.pop("dtype")
    name = view.operand(0)
    if _odd_scale(params["scale"]) is not None or name in view.draft.constants:
        _dequantize_by_parts(view, "float32")
        return
    node = Dequantize16(name=view.name, output=view.output, data=name, **params)
    view.draft.emit(node, "float32")


def _odd_scale(scales: Sequence[float]) -> float | None:
    """The first scale that isn't positive; None where all are."""
    return next((scale for scale in scales if scale <= 0), None)


def _note(view: OnnxNode, scale: float, first: int) -> None:
    """Notes of the nodes from ``first`` on why they are of floats."""
    reason = f"expected positive scales, found {scale:g}"
    view.draft.reasons.update({node.name: reason for node in view.draft.nodes[first:]})


def _with_positive_scales(view: OnnxNode, node: ops.Dequantize) -> ops.Dequantize:
    """A Dequantize of a constant with the same results, whose scales are all positive.

    Channels of scale 0 have their zero point as every element; those of a negative one are turned
    around it, or where that leaves the type, they and their zero point are turned bit by bit.
    """
    scale, zero = np.array(node.scale), np.array(node.zero_point, np.int64)
    if (scale > 0).all():
        return node
    data, axis = view.draft.constants[node.data], node.axis or 0
    column = [1] * data.ndim
    if node.axis is not None:
        column[axis] = -1
    spread, lows = zero.reshape(column), scale.reshape(column)
    turned, limits = 2 * spread - data, np.iinfo(data.dtype)
    others = tuple(i for i in range(data.ndim) if node.axis is None or i != axis)
    outside = ((turned < limits.min) | (turned > limits.max)).any(axis=others, keepdims=True)
    bits = (lows < 0) & outside
    turned = np.where(bits, np.bitwise_not(data), turned)
    values = np.where(lows > 0, data, np.where(lows < 0, turned, spread)).astype(data.dtype)
    zeros = np.where(bits, np.bitwise_not(zero.astype(data.dtype)).reshape(column), spread)
    positive = np.abs(scale)
    fill = positive[positive > 0].min(initial=np.inf)
    positive[positive == 0] = fill if np.isfinite(fill) else DEAD_SCALE
    return replace(
        node,
        data=view.draft.add_constant(f"{view.name}.positive", values),
        scale=tuple(float(s) for s in positive),
        zero_point=tuple(int(z) for z in zeros.reshape(-1)),
    )


def _plain(view: OnnxNode) -> bool:
    """Whether scales and zero points are constants, none of them of a block."""
    names = [view.optional(i) for i in (1, 2)]
    known = all(name is None or view.draft.known(name) is not None for name in names)
    return known and not view.integer("block_size", 0)


def _quantize_by_parts(view: OnnxNode, dtype: str) -> None:
    """``saturate(round_half_even(x / scale) + zero_point)``."""
    make = Maker(view)
    data = decoded(make, view.operand(0))
    if make.kind(data).dtype != "float32" or dtype not in RESULTS:
        raise view.unsupported(f"float32 data and a result of {' or '.join(RESULTS)}", dtype)
    scale = _spread(view, make, 1)
    steps = make.binary("div", data, scale)
    if "int" not in dtype:
        make.result(encoded(make, steps, dtype, bool(view.integer("saturate", 1))))
        return
    steps = make.unary("round", steps)
    if view.optional(2) is not None:
        steps = make.binary("add", steps, make.cast(_spread(view, make, 2), "float32"))
    low, high = limits(dtype)
    known = make.value(view.operand(1))
    if known is not None and not known.all():  # by 0, positive data are the most, others the least
        ends = make.where(make.binary("gt", data, 0.0), make.like(high, data), make.like(low, data))
        steps = make.where(make.binary("eq", scale, 0.0), ends, steps)
    limited = make.binary("min", make.binary("max", steps, float(low)), float(high))
    make.result(encoded(make, limited, dtype) if dtype in STORED else make.cast(limited, dtype))


def _result_dtype(view: OnnxNode) -> str:
    """The element type that a QuantizeLinear writes: its zero point's, or ``output_dtype``."""
    code = view.integer("output_dtype", 0)
    own = view.draft.dtype(code) if code else ""
    zero = view.dtype(2) if view.optional(2) is not None else ""
    if own and zero and own != zero:
        raise view.error(f"an output_dtype of {zero}, as its zero point has", own)
    return own or zero or "uint8"


def _dequantize_by_parts(view: OnnxNode, dtype: str) -> None:
    """``(x - zero_point) * scale``, computed in float32."""
    make = Maker(view)
    for kind, what in ((view.dtype(1), "scales"), (dtype, "a result")):
        if kind not in FLOATS:
            raise view.unsupported(f"{what} of {' or '.join(FLOATS)}", kind)
    wide = "float32" if view.dtype(0) in STORED else "int64"  # of few bits: float32 is exact
    data = make.cast(decoded(make, view.operand(0)), wide)
    if view.optional(2) is not None:
        data = make.binary("sub", data, make.cast(_spread(view, make, 2), wide))
    result = make.binary("mul", make.cast(data, "float32"), _spread(view, make, 1))
    make.result(encoded(make, result, dtype) if dtype in STORED else make.cast(result, dtype))


def _spread(view: OnnxNode, make: Maker, index: int) -> str:
    """Scales or zero points, to broadcast against the data: one, one per channel or per block."""
    name, shape = decoded(make, view.operand(index)), view.shape(0)
    if make.kind(name).dtype == "float16":
        name = make.cast(name, "float32")
    size = view.integer("block_size", 0)
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
    if not np.isfinite(scale).all():
        raise view.error("finite scales", f"{scale[~np.isfinite(scale)][0]:g}")
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
