"""Post-training quantization: onnxruntime's static quantizer, QDQ format."""

from __future__ import annotations

import copy
import logging
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx.version_converter
from onnx import helper

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.normal_form import FREE_INITIALIZERS, normalize
from vdla.compiler.frontend.shapes import (
    Open,
    Shapes,
    input_values,
    known_shapes,
    note_shapes,
    static_shapes,
)
from vdla.compiler.frontend.sizes import check_size
from vdla.compiler.frontend.sources import forget_source, source_of
from vdla.compiler.graph.types import Array
from vdla.compiler.models.recurrent_quantizer import (
    has_recurrent,
    quantize_recurrent,
    recurrent_ranges,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

RANDOM_SAMPLES = 8
WARNING, FATAL = 2, 4  # onnxruntime's levels of messages; the first is its default
PER_CHANNEL_OPSET = 13  # the first in which (De)QuantizeLinear has an axis


def quantize(
    source: str | Path,
    target: str | Path,
    calibration: str | Path | Mapping[str, Array] | None = None,
    shapes: Shapes | None = None,
) -> None:
    """Writes the QDQ form of the float model ``source`` to ``target``.

    Weights become int8 with one scale per output channel, activations int8 with a zero point;
    batch normalizations are folded into their convolutions first. Sizes that the model leaves open
    stay open; those in ``shapes`` are noted in the new file, so that nobody need give them again,
    and anybody may give others. A model of an opset before 13 is converted to it: scales per
    channel need it.

    Args:
        source: a float ONNX model.
        target: the file to write; written beside, then renamed.
        calibration: one array per input, samples along the first axis, or an .npz of such. Without
            it, standard normal samples are used: good for speed studies, poor for accuracy.
        shapes: sizes that the model leaves open, by the name of an input or of a dimension; a
            calibration gives them too.

    Raises:
        ModelError: the model or the samples don't fit, or a size is open and no samples have it.
    """
    model = _load(Path(source), shapes)
    where = source_of(model, str(source))
    _check_floats(model, where)
    if calibration is None:
        inputs = static_shapes(model, where, shapes)
        for name, shape in inputs.items():
            check_size(f"{where}: input {name}", shape, "float32")
        rng = np.random.default_rng(0)
        samples = [
            {name: rng.standard_normal(shape).astype(np.float32) for name, shape in inputs.items()}
            for _ in range(RANDOM_SAMPLES)
        ]
    else:
        known = known_shapes(model.graph, where, shapes)
        if isinstance(calibration, str | Path):
            samples = _samples(_read_arrays(Path(calibration)), known, str(calibration))
        else:
            samples = _samples(calibration, known, "calibration")
        inputs = {name: samples[0][name].shape for name in known}
    opened = _modern(_open(model), where)
    forget_source(opened)
    quantize_model(opened, target, samples, noted=inputs if shapes else None, where=where)


def quantize_model(
    model: onnx.ModelProto,
    target: str | Path,
    samples: Sequence[Mapping[str, Array]],
    *,
    unsigned: bool = False,
    noted: Mapping[str, Sequence[int]] | None = None,
    where: str = "",
) -> None:
    """Quantizes a model in memory with samples in memory; activations are int8, or uint8.
    The new file notes the shapes ``noted`` of inputs, for sizes that it leaves open.

    Raises:
        ModelError: onnxruntime can't; opens with ``where``, or with the graph's name.
    """
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rest = iter(samples)

        def get_next(self) -> Mapping[str, Array] | None:
            return next(self.rest, None)

    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, _quiet():
        source, folded, written = (Path(folder) / f"{n}.onnx" for n in ("float", "folded", "q"))
        onnx.save(model, str(source))
        try:
            quant_pre_process(str(source), str(folded), skip_symbolic_shape=True)
            quantize_static(
                str(folded),
                str(written),
                Reader(),
                quant_format=QuantFormat.QDQ,
                per_channel=True,
                activation_type=QuantType.QUInt8 if unsigned else QuantType.QInt8,
                weight_type=QuantType.QInt8,
            )
            if has_recurrent(model):
                ranges = recurrent_ranges(onnx.load(str(folded)), samples)
                onnx.save(quantize_recurrent(onnx.load(str(written)), ranges), str(written))
            if noted:
                done = onnx.load(str(written))
                note_shapes(done, noted)
                onnx.save(done, str(written))
        except Exception as error:  # onnxruntime has no common base class for its errors
            result = (str(error).strip() or repr(error)).splitlines()[0].rstrip(".")
            place = where or model.graph.name
            expected = "a model onnxruntime can quantize"
            raise ModelError(place, expected, result + _makers(model.graph, result)) from None
        os.replace(written, target)


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
def _quiet() -> Iterator[None]:
    """Without the quantizer's advice on the root logger, and what onnxruntime's sessions write to
    stderr: what goes wrong comes as an exception."""
    import onnxruntime

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.CRITICAL)
    onnxruntime.set_default_logger_severity(FATAL)
    try:
        yield
    finally:
        root.setLevel(level)
        onnxruntime.set_default_logger_severity(WARNING)


def _load(path: Path, shapes: Shapes | None) -> onnx.ModelProto:
    try:
        model = onnx.load(str(path))
    except FileNotFoundError:
        raise ModelError(str(path), "an ONNX file", "no file") from None
    except Exception as error:  # protobuf and external data each raise their own
        raise ModelError(str(path), "an ONNX model", first_line(error)) from None
    where = source_of(model, str(path))
    normalize(model, where, shapes)
    if any(n.op_type == "QuantizeLinear" for n in model.graph.node):
        raise ModelError(where, "a float model", "one that is quantized already")
    return model


def _check_floats(model: onnx.ModelProto, where: str) -> None:
    for value in input_values(model.graph):
        if value.type.tensor_type.elem_type != onnx.TensorProto.FLOAT:
            code = onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
            raise ModelError(f"{where}: input {value.name}", "float32 elements", code)


def _open(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with unknown sizes left out, where some files write -1."""
    opened = copy.deepcopy(model)
    graph = opened.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value < 0:
                dim.Clear()
    return opened


def _modern(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """The model in an opset that has scales per channel, and in an IR version whose initializers
    need not be inputs: those that the quantizer adds are none.
    """
    result = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
    if model.ir_version < FREE_INITIALIZERS:
        opset = helper.make_opsetid("", max(result, PER_CHANNEL_OPSET))
        model.ir_version = helper.find_min_ir_version_for([opset])
    if result >= PER_CHANNEL_OPSET:
        return model
    try:
        return onnx.version_converter.convert_version(model, PER_CHANNEL_OPSET)
    except Exception as error:  # the converter raises what its C++ does
        expected = f"a model of opset {PER_CHANNEL_OPSET} or one that can be converted to it"
        raise ModelError(where, expected, f"opset {result}: {error}") from None


def _read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz."""
    try:
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise ModelError(str(path), "an .npz of calibration samples", "no file") from None
    except Exception as error:  # zipfile, numpy and pickle each raise their own
        raise ModelError(str(path), "an .npz of calibration samples", error) from None


def _samples(
    arrays: Mapping[str, Array], inputs: Mapping[str, Open], where: str
) -> list[dict[str, Array]]:
    """Batches of samples, as large as the model takes, of arrays that have all samples."""
    samples: list[dict[str, Array]] = []
    for name, shape in inputs.items():
        if name not in arrays:
            result = ", ".join(arrays) or "nothing"
            raise ModelError(where, f"an array called {name}", result)
        array = np.asarray(arrays[name])  # bytes, where the zip's entry is no array
        if array.dtype.kind not in "biuf":
            raise ModelError(where, f"{name} to be an array of numbers", array.dtype)
        batches = _batches(np.asarray(array, np.float32), name, shape, where)
        samples = samples or [{} for _ in batches]
        if len(batches) != len(samples):
            raise ModelError(where, f"{len(samples)} batches of {name}", len(batches))
        for sample, batch in zip(samples, batches, strict=True):
            sample[name] = batch
    return samples


def _batches(array: Array, name: str, shape: Open, where: str) -> list[Array]:
    """Samples in portions as large as the model takes; the last repeats some to be full."""
    batch = shape[0] if shape and isinstance(shape[0], int) else 1
    rest = shape[1:]
    fits = len(rest) == array.ndim - 1 and all(
        not isinstance(want, int) or want == got
        for want, got in zip(rest, array.shape[1:], strict=True)
    )
    if not fits or len(array) < batch:
        sizes = ", ".join(("samples", *("?" if v is None else str(v) for v in rest)))
        many = f" and at least {batch} samples, the model's batch" if batch > 1 else ""
        raise ModelError(where, f"{name} of shape [{sizes}]{many}", list(array.shape))
    starts = (min(start, len(array) - batch) for start in range(0, len(array), batch))
    return [array[start : start + batch] for start in starts]
