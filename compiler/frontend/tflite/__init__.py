"""TFLite files as ONNX models in memory: :func:`translate`.

Integers stay as the file has them: every quantized tensor is a QuantizeLinear with the file's scale
and zero point, and every operator that reads it a DequantizeLinear in front. Operators between them
are those of floats, which the compiler's passes turn into integer ones. Images are held with
channels first between operators of images; inputs and outputs keep the file's shapes and types.

TFLite's own kernels of integers multiply by fixed-point factors and may round a result to the
neighbouring step; that is the largest difference of one operator.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.frontend.tflite import ops
from vdla.compiler.frontend.tflite.contents import Operator
from vdla.compiler.frontend.tflite.drafting import CODES, Draft
from vdla.compiler.frontend.tflite.inferring import note_input, sized
from vdla.compiler.frontend.tflite.reading import MAGIC, PLACE_OF_MAGIC, read
from vdla.compiler.frontend.tflite.translating import convert, convert_all, finished
from vdla.compiler.frontend.tflite.whole import Variable, Whole
from vdla.compiler.graph.types import Array

INITIAL = "vdla.initial."  # begins the keys of a model's metadata that hold first values
__all__ = ["Layers", "initial_values", "is_tflite", "ops", "translate", "translate_layers"]


def is_tflite(data: bytes) -> bool:
    """Whether bytes begin as a TFLite file does; twelve of them are enough."""
    return data[PLACE_OF_MAGIC] == MAGIC


def translate(data: bytes, where: str, shapes: Shapes | None = None) -> onnx.ModelProto:
    """An ONNX model that computes what a TFLite file does.

    Inputs and outputs are those of the first subgraph, in its order, with their names, shapes and
    element types. Sizes that the file leaves open and nobody gives
    are 1, as in LiteRT. Each resource variable that
    the model reads is one more input, named after it, and each that it assigns one more output,
    NAME.next, to be given as NAME the next time; :func:`initial_values` has what to begin with.
    One that convolutions read has its channels first, [N, C, H, W]: nobody but the model reads it,
    and a transposition each way would cost more than the convolution.

    Args:
        data: the file's bytes.
        where: its name, which opens every error.
        shapes: shapes of inputs that the file leaves open, by their names.

    Raises:
        ModelError: they aren't a TFLite file, it is damaged, it has an operator that isn't
            translated, or a shape is given that doesn't fit.
        UserError: the package ``tflite`` isn't installed.
    """
    whole = Whole(read(data, where))
    try:
        return _model(whole, shapes or {})
    except ModelError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # damage between parts
        raise ModelError(where, "parts that fit each other", first_line(error)) from None


def _model(whole: Whole, shapes: Shapes) -> onnx.ModelProto:
    """The ONNX model of a file."""
    draft = Draft(whole, whole.contents.subgraphs[0])
    inputs = _inputs(draft, shapes)
    convert_all(draft)
    outputs = _outputs(draft)
    for variable in whole.variables.values():
        inputs.append(_described(draft, variable))
        if variable.output:
            draft.emit("Identity", [variable.current], variable.output)
            kind = draft.value_info(variable.tensor, variable.output, variable.layout)
            outputs.append(kind)
    model = finished(draft, inputs, outputs)
    _note_initial(model, whole)
    return model


def _inputs(draft: Draft, shapes: Mapping[str, object]) -> list[onnx.ValueInfoProto]:
    """The inputs, with the shapes that are given."""
    names = [draft.tensors[index].name for index in draft.subgraph.inputs]
    if unknown := [name for name in shapes if name not in names]:
        expected = f"shapes for {' or '.join(names) or 'no inputs'}"
        raise ModelError(draft.where, expected, f"one for {unknown[0]}")
    result = []
    for index in draft.subgraph.inputs:
        draft.settle(draft.tensors[index], sized(draft.tensors[index], shapes, draft.where))
        value = draft.add_input(draft.tensors[index], draft.own[index])
        note_input(draft, value)
        result.append(value)
    return result


def _outputs(draft: Draft) -> list[onnx.ValueInfoProto]:
    """The results; one that is an input, too, or stands twice, gets a second name."""
    result, used = [], {draft.own[index] for index in draft.subgraph.inputs}
    for index in draft.subgraph.outputs:
        tensor, name = draft.tensors[index], draft.own[index]
        if name in used:
            name = draft.names.fresh(f"{name}.result")
        draft.end(tensor, name)
        used.add(name)
        result.append(draft.value_info(tensor, name))
    return result


# Variables ----------------------------------------------------------------------------------------


def initial_values(model: onnx.ModelProto) -> dict[str, Array]:
    """Values of the inputs that are variables before the first run, by the names of the inputs.

    Args:
        model: one that :func:`translate` made.
    """
    inputs = {value.name: value.type.tensor_type for value in model.graph.input}
    result = {}
    for entry in model.metadata_props:
        if entry.key.startswith(INITIAL):
            name = entry.key.removeprefix(INITIAL)
            result[name] = _initial(entry.value, inputs[name])
    return result


def _initial(value: str, kind: onnx.TypeProto.Tensor) -> Array:
    """A variable's first value, from what the metadata have: zeros where that is nothing."""
    if value:
        tensor = onnx.TensorProto.FromString(b64decode(value))
        return np.asarray(numpy_helper.to_array(tensor))
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    return np.zeros(shape, helper.tensor_dtype_to_np_dtype(kind.elem_type))


def _note_initial(model: onnx.ModelProto, whole: Whole) -> None:
    """Notes the first values of variables in a model's metadata; nothing for zeros."""
    for variable in whole.variables.values():
        value = ""
        if variable.initial is not None:
            tensor = numpy_helper.from_array(np.ascontiguousarray(variable.initial))
            value = b64encode(tensor.SerializeToString()).decode("ascii")
        model.metadata_props.add(key=f"{INITIAL}{variable.input}", value=value)


def _described(draft: Draft, variable: Variable) -> onnx.ValueInfoProto:
    """The input that a variable is, with its first value in words."""
    value = draft.value_info(variable.tensor, variable.input, variable.layout)
    initial = variable.initial
    first = "as the model's metadata say"
    if initial is None:
        first = "0 everywhere"
    elif initial.size and (initial == initial.flat[0]).all():
        first = f"{initial.flat[0]} everywhere"
    value.doc_string = f"a variable of the TFLite file, at first {first}"
    return value


# Each operator by itself --------------------------------------------------------------------------


@dataclass(frozen=True)
class Layers:
    """A model of operators that don't read each other's results, to compare each with LiteRT's.

    Attributes:
        model: its inputs are all tensors that operators read, its outputs all that they make.
        given: the tensor's number by the input's name.
        made: the tensor's number by the output's name.
        operators: the operator by the output's name.
    """

    model: onnx.ModelProto
    given: dict[str, int]
    made: dict[str, int]
    operators: dict[str, Operator]


def translate_layers(data: bytes, where: str, shapes: Shapes | None = None) -> Layers:
    """A model that computes every operator of the main subgraph from LiteRT's own operands.

    Raises:
        ModelError: as :func:`translate`.
    """
    whole = Whole(read(data, where))
    draft = Draft(whole, whole.contents.subgraphs[0])
    draft.images = frozenset()
    inputs, outputs = _inputs(draft, shapes or {}), []
    given = dict(zip((value.name for value in inputs), draft.subgraph.inputs, strict=True))
    made, operators = {}, {}
    whole.active.append(0)
    for operator in draft.subgraph.operators:
        convert(draft, operator)
        for tensor in (draft.tensors[index] for index in operator.outputs):
            known = tensor.index in draft.handles or draft.value_of(tensor) is not None
            if known or tensor.dtype not in CODES:
                continue
            own = draft.own[tensor.index]
            name, next_name = (draft.names.fresh(f"{own}:{each}") for each in ("made", "given"))
            draft.end(tensor, name)
            outputs.append(draft.value_info(tensor, name))
            inputs.append(draft.add_input(tensor, next_name))
            note_input(draft, inputs[-1])
            made[name], operators[name], given[next_name] = tensor.index, operator, tensor.index
    for variable in whole.variables.values():
        inputs.append(_described(draft, variable))
    model = finished(draft, inputs, outputs)
    _note_initial(model, whole)
    return Layers(model, given, made, operators)
