"""Post-training quantization: onnxruntime's static quantizer, QDQ format."""

from __future__ import annotations

import copy
import logging
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx.version_converter
from onnx import helper

from vdla.compiler.frontend.errors import ModelError, first_line
from vdla.compiler.frontend.normal_form import FREE_INITIALIZERS, normalize
from vdla.compiler.frontend.shapes import (
    Shapes,
    input_values,
    known_shapes,
    note_shapes,
    static_shapes,
)
from vdla.compiler.frontend.sizes import check_size
from vdla.compiler.frontend.sources import forget_source, source_of
from vdla.compiler.graph.types import Array
from vdla.compiler.models.calibration import Batch, Calibration, Pixels, random_samples, samples_of
from vdla.compiler.models.noise import mean_errors
from vdla.compiler.models.recurrent_quantizer import (
    has_recurrent,
    quantize_recurrent,
    recurrent_ranges,
)
from vdla.compiler.models.repair import correct_biases, equalize, layer_axes

Progress = Callable[[str, int, int], None]

if TYPE_CHECKING:
    from collections.abc import Iterator

NOISE_SAMPLES = 64  # that errors and their noise are measured on, at most
METHODS = ("minmax", "entropy", "percentile", "distribution")  # onnxruntime's, of ranges
WARNING, FATAL = 2, 4  # onnxruntime's levels of messages; the first is its default
PER_CHANNEL_OPSET = 13  # the first in which (De)QuantizeLinear has an axis


@dataclass(frozen=True)
class Recipe:
    """Choices of a quantization.

    ``method`` makes ranges of activations out of samples: "minmax" takes all, "percentile" the
    middle ``percentile`` % of the values, "entropy" loses the least information, "distribution"
    makes the mean and the deviation fit. Weights have a scale per channel, or ``per_tensor``.
    ``symmetric`` has activations around 0. ``ranges`` are those of tensors by name, in place of
    what samples say. ``exclude`` are nodes that stay floats, by name. Activations are int8, or
    ``unsigned``. Before that, ``equalize`` gives all channels between two layers ranges alike, and
    ``correct_bias`` takes the mean errors of channels off the biases (``repair.py``).
    """

    method: str = METHODS[0]
    percentile: float = 99.999
    per_tensor: bool = False
    symmetric: bool = False
    unsigned: bool = False
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    exclude: Sequence[str] = ()
    equalize: bool = False
    correct_bias: bool = False


PLAIN = Recipe()


def quantize(
    source: str | Path,
    target: str | Path,
    calibration: Calibration | None = None,
    shapes: Shapes | None = None,
    recipe: Recipe = PLAIN,
    pixels: Pixels = Pixels(),  # noqa: B008 (frozen)
    progress: Progress = lambda what, done, total: None,
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
        calibration: samples, see :func:`vdla.compiler.models.calibration.samples_of`; None for
            standard normal numbers: good for speed studies, poor for accuracy.
        shapes: sizes that the model leaves open, by the name of an input or of a dimension; a
            calibration gives them too.
        recipe: how it is quantized.
        pixels: what pixels become, where the calibration is a folder of images.
        progress: is told (what, done, of) as samples are run.

    Raises:
        ModelError: the model, the samples or the recipe don't fit, or a size is open and no samples
            have it.
    """
    model = _load(Path(source), shapes)
    where = source_of(model, str(source))
    samples = samples_for(model, where, calibration, shapes, pixels)
    noted = {name: array.shape for name, array in samples[0].items()} if shapes else None
    floats = _prepared(model, where, recipe)
    forget_source(floats)
    _check_recipe(recipe, floats, where)
    if recipe.correct_bias:
        floats = _with_corrected_biases(floats, samples, recipe, where, progress)
    _quantize_folded(floats, target, samples, recipe, noted, where, progress)


def _with_corrected_biases(
    floats: onnx.ModelProto,
    samples: Sequence[Batch],
    recipe: Recipe,
    where: str,
    progress: Progress,
) -> onnx.ModelProto:
    """Floats whose layers, quantized, have no mean error of their own."""
    result = copy.deepcopy(floats)
    some = [samples[number] for number in range(min(len(samples), NOISE_SAMPLES))]
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.onnx"
        _quantize_folded(floats, first, samples, recipe, None, where, progress)
        errors = mean_errors(floats, onnx.load(str(first)), some, layer_axes(floats))
    correct_biases(result, errors)
    return result


def samples_for(
    model: onnx.ModelProto,
    where: str,
    calibration: Calibration | None,
    shapes: Shapes | None,
    pixels: Pixels,
) -> Sequence[Batch]:
    """The samples that a model is quantized with, see :func:`quantize`."""
    _check_floats(model, where)
    if calibration is not None:
        return samples_of(calibration, known_shapes(model.graph, where, shapes), pixels, where)
    sizes = static_shapes(model, where, shapes)
    for name, shape in sizes.items():
        check_size(f"{where}: input {name}", shape, "float32")
    return random_samples(sizes)


class _Reader:
    """Samples as onnxruntime's calibration takes them: some of them at a time, so that what it
    keeps of a network's tensors is that of a few samples."""

    def __init__(self, samples: Sequence[Mapping[str, Array]], progress: Progress) -> None:
        self.samples, self.progress = samples, progress
        self.place, self.end = 0, len(samples)

    def __len__(self) -> int:
        return len(self.samples)

    def set_range(self, start_index: int, end_index: int) -> None:
        """Goes on with these samples."""
        self.place, self.end = start_index, end_index

    def get_next(self) -> Mapping[str, Array] | None:
        """The next sample; None behind the last one."""
        if self.place >= self.end:
            return None
        sample = self.samples[self.place]
        self.place += 1
        self.progress("calibration", self.place, len(self.samples))
        return sample


def float_model(source: str | Path, shapes: Shapes | None = None) -> onnx.ModelProto:
    """The float model in a file, as it is.

    Raises:
        ModelError: it isn't one.
    """
    return _load(Path(source), shapes)


def prepared_model(
    source: str | Path, shapes: Shapes | None = None, recipe: Recipe = PLAIN
) -> onnx.ModelProto:
    """The float model in a file as it is compared with what is quantized: batch normalizations
    folded, and its channels equalized where the recipe says so.

    Raises:
        ModelError: it isn't a float model, or onnxruntime can't.
    """
    model = _load(Path(source), shapes)
    return _prepared(model, source_of(model, str(source)), recipe)


def _prepared(model: onnx.ModelProto, where: str, recipe: Recipe) -> onnx.ModelProto:
    result = _folded(_modern(_open(model), where), where)
    if recipe.equalize:
        equalize(result)
    return result


def _folded(model: onnx.ModelProto, where: str) -> onnx.ModelProto:
    """A model with batch normalizations folded, constants computed, and the shapes noted."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder, _quiet():
        given, folded = (Path(folder) / f"{name}.onnx" for name in ("float", "folded"))
        onnx.save(model, str(given))
        try:
            quant_pre_process(str(given), str(folded), skip_symbolic_shape=True)
        except Exception as error:  # onnxruntime has no common base class for its errors
            raise _refusal(where, error, model) from None
        return onnx.load(str(folded))


def quantize_model(
    model: onnx.ModelProto,
    target: str | Path,
    samples: Sequence[Mapping[str, Array]],
    recipe: Recipe = PLAIN,
    *,
    noted: Mapping[str, Sequence[int]] | None = None,
    where: str = "",
    progress: Progress = lambda what, done, total: None,
) -> None:
    """Quantizes a model in memory with samples in memory.
    The new file notes the shapes ``noted`` of inputs, for sizes that it leaves open.

    Raises:
        ModelError: onnxruntime can't, or the recipe names what the model hasn't; opens with
            ``where``, or with the graph's name.
    """
    place = where or model.graph.name
    _check_recipe(recipe, model, place)
    _quantize_folded(_folded(model, place), target, samples, recipe, noted, place, progress)


def _quantize_folded(
    model: onnx.ModelProto,
    target: str | Path,
    samples: Sequence[Mapping[str, Array]],
    recipe: Recipe,
    noted: Mapping[str, Sequence[int]] | None,
    where: str,
    progress: Progress,
) -> None:
    """Quantizes a model whose batch normalizations are folded; otherwise as ``quantize_model``."""
    from onnxruntime.quantization import (
        CalibrationMethod,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    methods = dict(zip(METHODS, ("MinMax", "Entropy", "Percentile", "Distribution"), strict=True))
    target = Path(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, _quiet():
        source, written = (Path(folder) / f"{name}.onnx" for name in ("folded", "q"))
        onnx.save(model, str(source))
        try:
            quantize_static(
                str(source),
                str(written),
                _Reader(samples, progress),
                quant_format=QuantFormat.QDQ,
                per_channel=not recipe.per_tensor,
                activation_type=QuantType.QUInt8 if recipe.unsigned else QuantType.QInt8,
                weight_type=QuantType.QInt8,
                nodes_to_exclude=list(recipe.exclude),
                calibrate_method=CalibrationMethod[methods[recipe.method]],
                extra_options=_options(recipe),
            )
            if has_recurrent(model):
                ranges = recurrent_ranges(onnx.load(str(source)), samples)
                onnx.save(quantize_recurrent(onnx.load(str(written)), ranges), str(written))
            if noted:
                done = onnx.load(str(written))
                note_shapes(done, noted)
                onnx.save(done, str(written))
        except ModelError:
            raise
        except Exception as error:  # onnxruntime has no common base class for its errors
            raise _refusal(where, error, model) from None
        os.replace(written, target)


def _options(recipe: Recipe) -> dict[str, object]:
    """A recipe as onnxruntime's further options."""
    ranges = {
        name: [{"rmin": np.float32(low), "rmax": np.float32(high)}]
        for name, (low, high) in recipe.ranges.items()
    }
    return {
        "ActivationSymmetric": recipe.symmetric,
        "CalibTensorRangeSymmetric": recipe.symmetric,
        "CalibPercentile": recipe.percentile,
        "CalibStridedMinMax": 1,  # whatever the method: a sample at a time
        "TensorQuantOverrides": ranges,
    }


def _check_recipe(recipe: Recipe, model: onnx.ModelProto, where: str) -> None:
    """Raises ModelError where a recipe has another method, or names what a model hasn't."""
    if recipe.method not in METHODS:
        raise ModelError(where, f"a method of {', '.join(METHODS)}", recipe.method)
    nodes = {node.name for node in model.graph.node}
    tensors = {name for node in model.graph.node for name in (*node.input, *node.output)}
    for kind, known, names in (("node", nodes, recipe.exclude), ("tensor", tensors, recipe.ranges)):
        for name in names:
            if name not in known:
                close = get_close_matches(name, known, 1)
                hint = f"; did you mean {close[0]}?" if close else ""
                raise ModelError(where, f"a {kind} of the model", f"{name}{hint}")
    for name, (low, high) in recipe.ranges.items():
        if not low < high:
            raise ModelError(where, f"a range of {name} that isn't empty", f"{low} to {high}")


def _refusal(where: str, error: Exception, model: onnx.ModelProto) -> ModelError:
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
def _quiet() -> Iterator[None]:
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
