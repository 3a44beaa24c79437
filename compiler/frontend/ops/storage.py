"""Types that are only stored (bfloat16, and those of at most 8 bits): casts from and to them.

Every other operator on them computes in float32: its operands are cast before it and its results
behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.frontend.bodies import Body
from vdla.compiler.frontend.draft import DEFAULT_DOMAINS
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.storage import CODES
from vdla.compiler.graph.types import Array
from vdla.runtime.dtypes import STORED, dtype_of

CASTS = ("Cast", "CastLike", "QuantizeLinear", "DequantizeLinear")
BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}


def decoded(make: Maker, data: str) -> str:
    """A tensor of a stored type as float32; another one as it is."""
    if make.kind(data).dtype not in STORED:
        return data
    return make.add(ops.Decode(**make.names(), data=data), "float32")


def encoded(make: Maker, data: str, dtype: str, saturate: bool = True, mode: str = "up") -> str:
    """A tensor of numbers in a stored type.

    Integers keep their low bits. Floats beyond the largest become that one where they ``saturate``,
    else infinite or NaN; ``mode`` says to which power of two float8_e8m0fnu rounds.
    """
    if dtype in BITS and "int" in make.kind(data).dtype:
        data = _low_bits(make, data, dtype)
    data = make.cast(data, "float32")
    if dtype == "bfloat16":
        return make.add(ops.Encode(**make.names(), data=data), dtype)
    name = f"codes.{dtype}.{mode}.{'saturated' if saturate else 'open'}"
    if name not in make.draft.constants:
        make.draft.add_constant(name, codes(dtype, saturate, mode))
    return make.add(ops.Encode(**make.names(), data=data, codes=name), dtype)


def _low_bits(make: Maker, data: str, dtype: str) -> str:
    """Integers as so many bits hold them."""
    count = 1 << BITS[dtype]
    half = 0 if dtype.startswith("u") else count // 2
    moved = make.binary("add", make.cast(data, "int64"), float(half))
    return make.binary("sub", make.binary("bitand", moved, float(count - 1)), float(half))


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer of a type."""
    if dtype not in BITS:
        result = np.iinfo(dtype)
        return int(result.min), int(result.max)
    count = 1 << BITS[dtype]
    return (0, count - 1) if dtype.startswith("u") else (-count // 2, count // 2 - 1)


def codes(dtype: str, saturate: bool, mode: str) -> Array:
    """The byte of a stored type for each upper half of a float32, as :class:`ops.Encode` has it."""
    values = (np.arange(CODES, dtype=np.uint32) << 16).view(np.float32)
    with np.errstate(all="ignore"):
        if dtype == "float8_e8m0fnu":
            result = numpy_helper.to_float8e8m0(values, saturate, mode)
        elif dtype.startswith("float8") and saturate:
            result = numpy_helper.saturate_cast(values, dtype_of(dtype))
        else:
            result = values.astype(dtype_of(dtype))
    return np.asarray(result).view(np.uint8)


def widened(view: OnnxNode) -> Body | None:
    """A node on stored types as one on float32 between casts; None where it needs none."""
    node, draft = view.proto, view.draft
    if node.op_type in CASTS or node.domain not in DEFAULT_DOMAINS:
        return None
    names = [view.optional(place) or "" for place in range(len(node.input))]
    stored = {n: draft.tensors[n].dtype for n in names if n and draft.tensors[n].dtype in STORED}
    if not stored or not onnx.defs.has(node.op_type, draft.opset, ""):
        return None
    schema = onnx.defs.get_schema(node.op_type, draft.opset, "")
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    inner.name = f"{view.name}.float32"
    inner.input[:] = [_wide(view, name) if name in stored else name for name in names]
    before = [_cast(name, _wide(view, name), "float32") for name in stored]
    types = {
        _formal(schema.inputs, place): stored[name]
        for place, name in enumerate(names)
        if name in stored
    }
    after = []
    for place, name in enumerate(node.output):
        dtype = types.get(_formal(schema.outputs, place))
        if name and dtype is not None:
            inner.output[place] = _wide(view, name)
            after.append(_cast(_wide(view, name), name, dtype))
    return Body([*before, inner, *after], draft.opset)


def _wide(view: OnnxNode, name: str) -> str:
    return f"{view.name}.{name}.float32"


def _formal(parameters: Sequence[onnx.defs.OpSchema.FormalParameter], place: int) -> str:
    """The type parameter of an operand or result; the last one may stand for several."""
    return str(parameters[min(place, len(parameters) - 1)].type_str)


def _cast(source: str, target: str, dtype: str) -> onnx.NodeProto:
    code = TensorProto.FLOAT if dtype == "float32" else _code(dtype)
    return helper.make_node("Cast", [source], [target], to=code)


def _code(dtype: str) -> int:
    return int(helper.np_dtype_to_tensor_dtype(dtype_of(dtype)))
