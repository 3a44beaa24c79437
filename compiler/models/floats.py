"""Networks of floats as a quantizer takes them: read, brought to an opset, and folded."""

from __future__ import annotations

import copy
import logging
import re
import tempfile
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import onnx.version_converter
from onnx import helper

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.normal_form import FREE_INITIALIZERS, normalize
from vdla.compiler.frontend.shapes import Shapes, input_values
from vdla.compiler.frontend.sources import source_of
from vdla.compiler.models.folding import fold_behind_layers

if TYPE_CHECKING:
    from collections.abc import Iterator

WARNING, FATAL = 2, 4  # onnxruntime's levels of messages; the first is its default
QUANTIZERS = ("QuantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger")
KINDS = ("float32", "int32", "int64")  # elements of inputs
PER_CHANNEL_OPSET = 13  # the first in which (De)QuantizeLinear has an axis


def load_floats(path: Path, shapes: Shapes | None) -> onnx.ModelProto:
    """The float model in a file, as it is, in ONNX's normal form.

    Raises:
        ModelError: there is none, or it is quantized already.
    """
    try:
        model = onnx.load(str(path))
    except FileNotFoundError:
        raise ModelError(str(path), "an ONNX file", "no file") from None
    except Exception as error:  # protobuf and external data each raise their own
        raise ModelError(str(path), "an ONNX model", first_line(error)) from None
    where = source_of(model, str(path))
    normalize(model, where, shapes)
    if is_quantized(model):
        raise ModelError(where, "a float model", "one that is quantized already")
    return model


def is_quantized(model: onnx.ModelProto) -> bool:
    """Whether a model has integers in place of floats."""
    return any(n.op_type in QUANTIZERS or n.op_type.startswith("QLinear") for n in model.graph.node)


def input_kinds(model: onnx.ModelProto, where: str) -> dict[str, str]:
    """The element type of each input: floats, or whole numbers, as words are.

    Raises:
        ModelError: an input has another one.
    """
    result = {}
    for value in input_values(model.graph):
        code = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
        result[value.name] = {"float": "float32"}.get(code, code)
        if result[value.name] not in KINDS:
            expected = f"{', '.join(KINDS[:-1])} or {KINDS[-1]} elements"
            raise ModelError(f"{where}: input {value.name}", expected, code)
    return result


def opened(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with unknown sizes left out, where some files write -1."""
    result = copy.deepcopy(model)
    graph = result.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.Clear()
    return result


def modern(model: onnx.ModelProto, where: str, opset: int = PER_CHANNEL_OPSET) -> onnx.ModelProto:
    """The model in an opset that has scales per channel, or in a later one, and in an IR version
    whose initializers need not be inputs: those that the quantizer adds are none.
    """
    result = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    least = helper.find_min_ir_version_for([helper.make_opsetid("", max(result, opset))])
    if model.ir_version < FREE_INITIALIZERS or (result < opset and opset > PER_CHANNEL_OPSET):
        model.ir_version = least
    if result >= opset:
        return model
    try:
        return onnx.version_converter.convert_version(model, opset)
    except Exception as error:  # the converter raises what its C++ does
        expected = f"a model of opset {opset} or one that can be converted to it"
        raise ModelError(where, expected, f"opset {result}: {error}") from None


def folded(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A model with batch normalizations folded, in pieces, too, constants computed, and the shapes
    noted."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder, quiet():
        given, result = (Path(folder) / f"{name}.onnx" for name in ("float", "folded"))
        onnx.save(model, str(given))
        try:
            quant_pre_process(str(given), str(result), skip_symbolic_shape=True)
        except Exception as error:  # onnxruntime has no common base class for its errors
            raise refusal(where, error, model) from None
        made = onnx.load(str(result))
    fold_behind_layers(made)
    return made


def refusal(where: str, error: Exception, model: onnx.ModelProto) -> ModelError:
    """An error of onnxruntime's quantizer, with the nodes of the tensors that it names."""
    text = (str(error).strip() or repr(error)).splitlines()[0].rstrip(".")
    expected = "a model onnxruntime can quantize"
    return ModelError(where, expected, text + _makers(model.graph, text))


def _makers(graph: onnx.GraphProto, text: str) -> str:
    """Which nodes write the tensors that a message of onnxruntime names in quotes."""
    named = set(re.findall(r"'([^']+)'", text))
    makers = (
        f"; {each} is a result of node {node.name or 'without a name'} ({node.op_type})"
        for node in graph.node
        for each in node.output
        if each in named
    )
    return "".join(makers)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the quantizer's advice on the root logger and on stdout, and what onnxruntime's
    sessions write to stderr: what goes wrong comes as an exception."""
    import onnxruntime

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(FATAL)
    try:
        with redirect_stdout(StringIO()):
            yield
    finally:
        root.setLevel(level)
        onnxruntime.set_default_logger_severity(WARNING)
