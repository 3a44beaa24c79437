"""QONNX: floats that few integers stand for, of any width, as QuantizeLinear and its like.

    Quant(x, scale, zero, bits) = (round(clip(x / scale + zero, low, high)) - zero) * scale

with the integers of so many ``bits`` as limits, ``signed`` or not; of ``narrow`` ranges one at an
end is left out. Brevitas and QKeras write such nodes. QuantizeLinear rounds before it adds the zero
point: by an odd one, what lies in the middle between two integers goes to the other of them.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.bodies import Body
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph.types import Array

DOMAINS = ("qonnx.custom_op.general", "finn.custom_op.general", "onnx.brevitas")
OPERATORS = ("Quant", "IntQuant")
LEAST_BITS = 2  # of 1 bit, integers are -1 and 1
ROUNDINGS = {"ROUND": "Round", "HALF_EVEN": "Round", "CEIL": "Ceil", "FLOOR": "Floor"}


def quantizer_body(view: OnnxNode) -> Body | None:
    """A Quant as nodes of ONNX: between integers of a byte where they are enough and their rounding
    is QuantizeLinear's, else of floats. None where its parameters aren't known, or have no form.
    """
    known = [view.draft.known(view.operand(place)) for place in (1, 2, 3)]
    if any(value is None for value in known):
        return None
    scale, zero, bits = (np.asarray(value, np.float32) for value in known)
    rounding = view.text("rounding_mode", "ROUND").upper()
    if bits.size != 1 or bits.reshape(-1)[0] < LEAST_BITS or rounding not in ROUNDINGS:
        return None
    make = _Maker(view)
    ends, operator = _ends(view, int(bits.reshape(-1)[0])), ROUNDINGS[rounding]
    quant = _of_a_byte(view, scale, zero, ends) if operator == "Round" else None
    if quant is None:
        _floats(make, ends, operator)
    else:
        _integers(make, ends, *quant)
    return Body(make.nodes, view.draft.opset)


def _ends(view: OnnxNode, bits: int) -> tuple[int, int]:
    """The least and the greatest integer."""
    narrow = view.integer("narrow", 0)
    if view.integer("signed", 1):
        return -(1 << bits - 1) + narrow, (1 << bits - 1) - 1
    return 0, (1 << bits) - 1 - narrow


class _Maker:
    """The nodes of a body."""

    def __init__(self, view: OnnxNode) -> None:
        self.view, self.nodes = view, list[onnx.NodeProto]()

    def constant(self, value: Array) -> str:
        """A tensor that is known now."""
        return self.node("Constant", value=numpy_helper.from_array(value))

    def node(self, op: str, *inputs: str, last: bool = False, **attributes: object) -> str:
        """A node; its result, which is the body's for the last one."""
        own = f"{self.view.name}.{op}{len(self.nodes)}"
        name = str(self.view.proto.output[0]) if last else own
        self.nodes.append(helper.make_node(op, inputs, [name], own, **attributes))
        return name


def _of_a_byte(
    view: OnnxNode, scale: Array, zero: Array, ends: tuple[int, int]
) -> tuple[Array, Array, int] | None:
    """Scales, zero points and their axis as QuantizeLinear has them; None where it hasn't."""
    dtype = np.int8 if ends[0] < 0 else np.uint8
    limits, rank = np.iinfo(dtype), len(view.shape(0))
    inside = ends[0] >= limits.min and ends[1] <= limits.max
    if not inside or (zero != np.rint(zero)).any() or zero.min() < ends[0] or zero.max() > ends[1]:
        return None
    if not (scale > 0).all():
        return None
    if scale.size == zero.size == 1:
        return scale.reshape(()), zero.reshape(()).astype(dtype), 0
    both = np.broadcast_shapes(scale.shape, zero.shape)
    lay = (1,) * (rank - len(both)) + both
    axes = [axis for axis, size in enumerate(lay) if size > 1]
    if len(axes) != 1 or len(lay) != rank:
        return None
    vectors = (np.broadcast_to(each, both).reshape(-1) for each in (scale, zero))
    scales, zeros = vectors
    return scales, zeros.astype(dtype), axes[0]


def _integers(make: _Maker, ends: tuple[int, int], scale: Array, zero: Array, axis: int) -> None:
    """Quantized, limited and dequantized."""
    quant = make.constant(scale), make.constant(zero)
    data = make.node("QuantizeLinear", make.view.operand(0), *quant, axis=axis)
    limits = np.iinfo(zero.dtype)
    if ends != (limits.min, limits.max):
        bounds = [make.constant(np.array(end, zero.dtype)) for end in ends]
        data = make.node("Clip", data, *bounds)
    make.node("DequantizeLinear", data, *quant, axis=axis, last=True)


def _floats(make: _Maker, ends: tuple[int, int], rounding: str) -> None:
    """The definition, in floats."""
    view = make.view
    data, scale, zero = (view.operand(place) for place in range(3))
    bounds = [make.constant(np.array(end, np.float32)) for end in ends]
    steps = make.node("Add", make.node("Div", data, scale), zero)
    integers = make.node(rounding, make.node("Clip", steps, *bounds))
    make.node("Mul", make.node("Sub", integers, zero), scale, last=True)
