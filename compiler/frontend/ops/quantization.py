"""Quantize and Dequantize."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.frontend.ops.storage import decoded, encoded, limits
from vdla.compiler.graph import ops
from vdla.runtime.dtypes import STORED

STORED_TYPES = frozenset(STORED)
BYTES = ("int8", "uint8")
FLOATS = ("float32", "float16", "bfloat16")  # of scales, and of what is dequantized
FLOAT = onnx.TensorProto.FLOAT
RESULTS = ("int8", "uint8", "int16", "uint16", *STORED)  # what QuantizeLinear writes


@converts("QuantizeLinear")
def _quantize(view: OnnxNode) -> None:
    dtype = _result_dtype(view)
    if view.integer("precision", FLOAT) not in (0, FLOAT):
        actual = view.draft.dtype(view.integer("precision", FLOAT))
        raise view.error("a precision of float32", actual)
    if not _plain(view) or dtype not in BYTES or view.dtype(0) in STORED_TYPES:
        _quantize_by_parts(view, dtype)
        return
    params = _quant_params(view, dtype)
    params.pop("dtype")
    node = ops.Quantize(name=view.name, output=view.output, data=view.operand(0), **params)
    view.draft.emit(node, dtype)


@converts("DequantizeLinear")
def _dequantize(view: OnnxNode) -> None:
    code = view.integer("output_dtype", 0)
    dtype = view.draft.dtype(code) if code else view.dtype(1)
    parts = STORED_TYPES | {"int16", "uint16"}
    if not _plain(view) or dtype != "float32" or parts & {view.dtype(0), view.dtype(1)}:
        _dequantize_by_parts(view, dtype)
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


def _quantize_by_parts(view: OnnxNode, dtype: str) -> None:
    """``saturate(round_half_even(x / scale) + zero_point)``."""
    make = Maker(view)
    data = decoded(make, view.operand(0))
    if make.kind(data).dtype != "float32" or dtype not in RESULTS:
        raise view.unsupported(f"float32 data and a result of {' or '.join(RESULTS)}", dtype)
    steps = make.binary("div", data, _spread(view, make, 1))
    if "int" not in dtype:
        make.result(encoded(make, steps, dtype, bool(view.integer("saturate", 1))))
        return
    steps = make.unary("round", steps)
    if view.optional(2) is not None:
        steps = make.binary("add", steps, make.cast(_spread(view, make, 2), "float32"))
    low, high = limits(dtype)
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
