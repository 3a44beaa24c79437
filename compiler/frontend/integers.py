"""Operators on quantized integers as those on floats between DequantizeLinear and QuantizeLinear.

onnxruntime's quantizer writes either (``QuantFormat.QOperator`` or ``QDQ``). The passes turn the
second form into integer operators again, whatever the operator, so the first becomes the second:
QLinearConv and its like, and operators that only move integers, such as a MaxPool of uint8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend import qonnx
from vdla.compiler.frontend.bodies import Body
from vdla.compiler.frontend.draft import DEFAULT_DOMAINS
from vdla.compiler.frontend.node import MICROSOFT, OnnxNode

DOMAINS = (*DEFAULT_DOMAINS, MICROSOFT)
LEFT_OUT = ("channels_last", "opset")  # attributes that the operators on floats haven't


@dataclass(frozen=True)
class Form:
    """An operator on floats, and where the operands of its integer form stand.

    Each of ``data`` is a tensor, then its scale and its zero point; ``result`` is where the
    result's scale and zero point are; ``bias`` is an int32 in units of the first two's product.
    """

    operator: str
    data: tuple[int, ...]
    result: int
    bias: int | None = None


FORMS = {
    "QLinearConv": Form("Conv", (0, 3), 6, bias=8),
    "QGemm": Form("Gemm", (0, 3), 7, bias=6),
    "QLinearMatMul": Form("MatMul", (0, 3), 6),
    "QLinearAdd": Form("Add", (0, 3), 6),
    "QLinearMul": Form("Mul", (0, 3), 6),
    "QLinearSigmoid": Form("Sigmoid", (0,), 3),
    "QLinearLeakyRelu": Form("LeakyRelu", (0,), 3),
    "QLinearSoftmax": Form("Softmax", (0,), 3),
    "QLinearAveragePool": Form("AveragePool", (0,), 3),
    "QLinearGlobalAveragePool": Form("GlobalAveragePool", (0,), 3),
    "QLinearReduceMean": Form("ReduceMean", (0,), 3),
}
INTEGER_OPERATORS = {*FORMS, "QLinearConcat", *qonnx.OPERATORS}
MOVES = (
    "MaxPool", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Split", "Slice", "Pad",
    "Gather", "Tile", "Expand", "DepthToSpace", "SpaceToDepth", "Concat",
)  # fmt: skip
BYTES = ("int8", "uint8")


def float_body(view: OnnxNode) -> Body | None:
    """A node on quantized integers as one on floats; None where it is none, or has no such form."""
    operator = view.proto.op_type
    if view.proto.domain in qonnx.DOMAINS and operator in qonnx.OPERATORS:
        return qonnx.quantizer_body(view)
    if view.proto.domain not in DOMAINS or view.attributes.get("channels_last"):
        return None
    if operator == "QLinearConcat":
        return _concat(view)
    if operator in FORMS:
        return _computed(view, FORMS[operator])
    if operator == "Clip":
        return _limited(view)
    moves = operator in MOVES or (operator == "Resize" and _is_resized(view))
    return _moved(view) if moves else None


def _is_resized(view: OnnxNode) -> bool:
    """Whether an image of integers is resized as its floats are: to the nearest pixel; or by means,
    which onnxruntime rounds towards 0, and the floats' quantization to the nearest: by less than
    a step, where nobody is strict."""
    mode = view.text("mode", "nearest")
    return mode == "nearest" or (mode == "linear" and not view.draft.strict)


class _Writer:
    """The nodes of a body."""

    def __init__(self, view: OnnxNode) -> None:
        self.view, self.name = view, view.name
        self.nodes: list[onnx.NodeProto] = []

    def constant(self, value: np.ndarray) -> str:
        """A tensor that is known now."""
        name = f"{self.name}.constant{len(self.nodes)}"
        tensor = numpy_helper.from_array(value)
        self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def dequantized(self, data: str, quant: Sequence[str], axis: int = 1) -> str:
        """The floats that integers stand for."""
        name = f"{self.name}.float{len(self.nodes)}"
        inputs = [data, *filter(None, quant)]
        node = helper.make_node("DequantizeLinear", inputs, [name], name=name, axis=axis)
        self.nodes.append(node)
        return name

    def quantized(self, data: str, quant: Sequence[str], target: str) -> None:
        """The integers of a result."""
        inputs, name = [data, *filter(None, quant)], f"{self.name}.quantize{len(self.nodes)}"
        self.nodes.append(helper.make_node("QuantizeLinear", inputs, [target], name=name))

    def operator(self, operator: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """The operator on floats, with the node's attributes."""
        node = helper.make_node(operator, inputs, outputs, name=f"{self.name}.{operator}")
        kept = (a for a in self.view.proto.attribute if a.name not in LEFT_OUT)
        node.attribute.extend(kept)
        self.nodes.append(node)

    def body(self) -> Body:
        """All of them."""
        return Body(self.nodes, self.view.draft.opset)


def _operands(view: OnnxNode, start: int, count: int) -> list[str]:
    return [view.optional(start + n) or "" for n in range(count)]


def _computed(view: OnnxNode, form: Form) -> Body | None:
    """Dequantized operands, the operator, and its quantized result."""
    write = _Writer(view)
    inputs = []
    for place in form.data:
        data, *quant = _operands(view, place, 3)
        inputs.append(write.dequantized(data, quant, _channels(view, form)))
    if form.bias is not None and (bias := view.optional(form.bias)) is not None:
        scales = [view.draft.known(view.operand(place + 1)) for place in form.data]
        if any(scale is None for scale in scales):
            return None
        product = np.multiply(*[np.asarray(scale, np.float32).reshape(-1) for scale in scales])
        product = product * np.float32(view.attributes.get("alpha", 1.0))
        scale = product.reshape(() if product.size == 1 else -1)
        inputs.append(write.dequantized(bias, [write.constant(scale)], axis=0))
    _finished(write, view, form, inputs)
    return write.body()


def _channels(view: OnnxNode, form: Form) -> int:
    """The axis of weights along which they have scales."""
    if form.operator == "Conv":
        return 0
    return 0 if view.integer("transB", 0) else 1


def _finished(write: _Writer, view: OnnxNode, form: Form, inputs: Sequence[str]) -> None:
    """The operator, and what quantizes its result; a QGemm may have a result of floats."""
    target, quant = str(view.proto.output[0]), _operands(view, form.result, 2)
    if quant[0]:
        result = f"{view.name}.result"
        write.operator(form.operator, inputs, [result])
        write.quantized(result, quant, target)
    else:
        write.operator(form.operator, inputs, [target])


def _concat(view: OnnxNode) -> Body:
    """The result's scale and zero point come first, then each part with its own."""
    write, count = _Writer(view), len(view.proto.input)
    parts = [_operands(view, place, 3) for place in range(2, count, 3)]
    inputs = [write.dequantized(part, quant) for part, *quant in parts]
    _finished(write, view, Form("Concat", (), 0), inputs)
    return write.body()


def _limited(view: OnnxNode) -> Body | None:
    """A Clip of integers, between limits that are known, as one of the floats that they stand for:
    tools write it where fewer values are used than a byte has."""
    names = _operands(view, 0, 3)
    quant, dtype = view.draft.quantized.get(names[0]), view.draft.tensors[names[0]].dtype
    if (
        quant is None
        or dtype not in BYTES
        or any(n and view.draft.known(n) is None for n in names[1:])
    ):
        return None
    write, result = _Writer(view), f"{view.name}.result"
    inputs = [name and write.dequantized(name, quant) for name in names]
    write.operator("Clip", inputs, [result])
    write.quantized(result, quant, str(view.proto.output[0]))
    return write.body()


def _moved(view: OnnxNode) -> Body | None:
    """An operator that gives integers back as they are, on the floats that they stand for."""
    operator, draft = view.proto.op_type, view.draft
    names = _operands(view, 0, len(view.proto.input))
    places = range(len(names)) if operator == "Concat" else [0]
    quants = {draft.quantized.get(names[place]) for place in places}
    quant = quants.pop()
    if quants or quant is None or draft.tensors[names[0]].dtype not in BYTES:
        return None
    write, floats = _Writer(view), [*places]
    if operator == "Pad" and len(names) > 2 and names[2]:
        floats.append(2)
    inputs = [
        write.dequantized(name, quant) if place in floats else name
        for place, name in enumerate(names)
    ]
    if operator == "Pad" and not names[2:3]:  # by default the integer 0
        zero = write.constant(np.zeros((), draft.tensors[names[0]].dtype))
        inputs = [*inputs, write.dequantized(zero, quant)]
    results = [f"{view.name}.result{n}" if name else "" for n, name in enumerate(view.proto.output)]
    write.operator(operator, inputs, results)
    for result, target in zip(results, view.proto.output, strict=True):
        if result:
            write.quantized(result, quant, str(target))
    return write.body()
