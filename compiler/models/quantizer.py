"""Post-training quantization: onnxruntime's static quantizer, QDQ format, and repairs around it.

floats    folded, equalized, smoothed                  ``prepared_model``
recipe    tensors of 16 bits are chosen                ``_Quantizer.with_wide_tensors``
recipe    nodes that stay floats are chosen            ``_Quantizer.with_floats``
floats    biases corrected                             ``_Quantizer.with_corrected_biases``
QDQ       onnxruntime's; weights rounded by inputs     ``_Quantizer.write``
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.shapes import Shapes, known_shapes, note_shapes, static_shapes
from vdla.compiler.frontend.sizes import check_size
from vdla.compiler.frontend.sources import forget_source, source_of
from vdla.compiler.graph.types import Array
from vdla.compiler.models.calibration import Batch, Calibration, Pixels, random_samples, samples_of
from vdla.compiler.models.floats import (
    PER_CHANNEL_OPSET,
    check_floats,
    folded,
    load_floats,
    modern,
    opened,
    quiet,
    refusal,
)
from vdla.compiler.models.grouped import BLOCKS_OPSET, round_in_groups
from vdla.compiler.models.noise import (
    layer_noise,
    mean_errors,
    rounded_before,
    rounding_noise,
    tensors_of,
)
from vdla.compiler.models.recipe import METHODS, PLAIN, Recipe
from vdla.compiler.models.recurrent_quantizer import (
    has_recurrent,
    quantize_recurrent,
    recurrent_ranges,
)
from vdla.compiler.models.repair import correct_biases, equalize, layer_axes, smooth, smoothed
from vdla.compiler.models.rounding import round_by_inputs

Progress = Callable[[str, int, int], None]
Samples = Sequence[Mapping[str, Array]]

FLOAT_ROUNDS = 5  # in which nodes before others become floats
NOISE_SAMPLES = 64  # that errors and their noise are measured on, at most


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
    model = load_floats(Path(source), shapes)
    where = source_of(model, str(source))
    samples = samples_for(model, where, calibration, shapes, pixels)
    noted = {name: array.shape for name, array in samples[0].items()} if shapes else None
    floats = _prepared(model, where, recipe, samples)
    forget_source(floats)
    recipe.check(floats, where)
    _Quantizer(recipe, samples, where, progress).quantize(floats, Path(target), noted)


def samples_for(
    model: onnx.ModelProto,
    where: str,
    calibration: Calibration | None,
    shapes: Shapes | None,
    pixels: Pixels,
) -> Sequence[Batch]:
    """The samples that a model is quantized with, see :func:`quantize`."""
    check_floats(model, where)
    if calibration is not None:
        return samples_of(calibration, known_shapes(model.graph, where, shapes), pixels, where)
    sizes = static_shapes(model, where, shapes)
    for name, shape in sizes.items():
        check_size(f"{where}: input {name}", shape, "float32")
    return random_samples(sizes)


def first_samples(samples: Samples) -> Samples:
    """The samples that noise is measured on, NOISE_SAMPLES at most."""
    return [samples[number] for number in range(min(len(samples), NOISE_SAMPLES))]


def float_model(source: str | Path, shapes: Shapes | None = None) -> onnx.ModelProto:
    """The float model in a file, as it is.

    Raises:
        ModelError: it isn't one.
    """
    return load_floats(Path(source), shapes)


def prepared_model(
    source: str | Path,
    shapes: Shapes | None = None,
    recipe: Recipe = PLAIN,
    samples: Samples = (),
) -> onnx.ModelProto:
    """The float model in a file as it is compared with what is quantized: batch normalizations
    folded, and its channels equalized and, by the samples, smoothed where the recipe says so.

    Raises:
        ModelError: it isn't a float model, or onnxruntime can't.
    """
    model = load_floats(Path(source), shapes)
    return _prepared(model, source_of(model, str(source)), recipe, samples)


def _prepared(
    model: onnx.ModelProto, where: str, recipe: Recipe, samples: Samples
) -> onnx.ModelProto:
    opset = BLOCKS_OPSET if recipe.group else PER_CHANNEL_OPSET
    result = folded(modern(opened(model), where, opset), where)
    if recipe.equalize:
        equalize(result)
    if recipe.smooth:
        smooth(result, _largest(result, smoothed(result), samples), recipe.smooth)
    return result


def _largest(model: onnx.ModelProto, names: Sequence[str], samples: Samples) -> dict[str, Array]:
    """The largest magnitude of each index of some tensors' last axes, over all samples."""
    run, result = tensors_of(model, names), dict[str, Array]()
    for number in range(len(samples)):
        for name, tensor in run(samples[number]).items():
            most = np.abs(tensor).reshape(-1, tensor.shape[-1]).max(0)
            result[name] = np.maximum(result.get(name, most), most)
    return result


def quantize_model(
    model: onnx.ModelProto,
    target: str | Path,
    samples: Samples,
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
    floats = _prepared(model, place, recipe, samples)
    recipe.check(floats, place)
    _Quantizer(recipe, samples, place, progress).quantize(floats, Path(target), noted)


@dataclass(frozen=True)
class _Quantizer:
    """A recipe at work on folded floats."""

    recipe: Recipe
    samples: Samples
    where: str
    progress: Progress

    def quantize(
        self, floats: onnx.ModelProto, target: Path, noted: Mapping[str, Sequence[int]] | None
    ) -> None:
        """Writes the QDQ form of floats, after the repairs that need a first one."""
        own = self
        if self.recipe.bits16_below is not None:
            own = self.with_wide_tensors(floats)
        if self.recipe.floats_below is not None:
            own = own.with_floats(floats)
        if self.recipe.correct_bias:
            floats = own.with_corrected_biases(floats)
        own.write(floats, target, noted)

    @property
    def some(self) -> Samples:
        """Samples that noise is measured on."""
        return first_samples(self.samples)

    def with_wide_tensors(self, floats: onnx.ModelProto) -> _Quantizer:
        """The recipe with 16 bits for all tensors that lose more by 8 than it allows."""
        assert self.recipe.bits16_below is not None
        plain = replace(self.recipe, bits16=(), gptq=False)
        first = replace(self, recipe=plain).written(floats)
        noise = rounding_noise(floats, first, self.some)
        wide = [name for name, ratio in noise.items() if ratio < self.recipe.bits16_below]
        names = tuple(dict.fromkeys((*self.recipe.bits16, *wide)))
        return replace(self, recipe=replace(self.recipe, bits16=names))

    def with_floats(self, floats: onnx.ModelProto) -> _Quantizer:
        """The recipe without all nodes that lose more by themselves than it allows, and without
        those whose rounded results they read; and so on, as long as others are lost by that."""
        assert self.recipe.floats_below is not None
        own, makers = self, {name: n.name for n in floats.graph.node for name in n.output}
        for _ in range(FLOAT_ROUNDS):
            first = own.written(floats)
            noise = layer_noise(floats, first, self.some)
            lost = [each.name for each in noise.layers if each.own < self.recipe.floats_below]
            read = [name for each in lost for name in rounded_before(floats, first, each)]
            lost += [makers[name] for name in read if name in makers]
            names = tuple(dict.fromkeys((*own.recipe.exclude, *lost)))
            if len(names) == len(own.recipe.exclude):
                break
            own = replace(own, recipe=replace(own.recipe, exclude=names))
        return own

    def with_corrected_biases(self, floats: onnx.ModelProto) -> onnx.ModelProto:
        """Floats whose layers, quantized, have no mean error of their own."""
        result = copy.deepcopy(floats)
        errors = mean_errors(floats, self.written(floats), self.some, layer_axes(floats))
        correct_biases(result, errors)
        return result

    def written(self, floats: onnx.ModelProto) -> onnx.ModelProto:
        """The QDQ form of floats."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "q.onnx"
            self.write(floats, path, None)
            return onnx.load(str(path))

    def write(
        self, floats: onnx.ModelProto, target: Path, noted: Mapping[str, Sequence[int]] | None
    ) -> None:
        """Writes the QDQ form of floats."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder, quiet():
            source, written = (Path(folder) / f"{name}.onnx" for name in ("folded", "q"))
            onnx.save(floats, str(source))
            try:
                self._run_onnxruntime(source, written)
                self._finish(floats, written, noted)
            except ModelError:
                raise
            except Exception as error:  # onnxruntime has no common base class for its errors
                raise refusal(self.where, error, floats) from None
            os.replace(written, target)

    def _finish(
        self, floats: onnx.ModelProto, written: Path, noted: Mapping[str, Sequence[int]] | None
    ) -> None:
        """Changes what onnxruntime has written, where there is something to change."""
        recurrent = has_recurrent(floats)
        if not (self.recipe.gptq or self.recipe.group or recurrent or noted):
            return
        model = onnx.load(str(written))
        if self.recipe.group:
            seen = self.some if self.recipe.gptq else ()
            round_in_groups(model, floats, self.recipe.group, seen, self.progress)
        elif self.recipe.gptq:
            round_by_inputs(model, floats, self.some, self.progress)
        if recurrent:
            model = quantize_recurrent(model, recurrent_ranges(floats, self.samples))
        if noted:
            note_shapes(model, noted)
        onnx.save(model, str(written))

    def _run_onnxruntime(self, source: Path, written: Path) -> None:
        from onnxruntime.quantization import (
            CalibrationMethod,
            QuantFormat,
            QuantType,
            quantize_static,
        )

        recipe = self.recipe
        methods = dict(
            zip(METHODS, ("MinMax", "Entropy", "Percentile", "Distribution"), strict=True)
        )
        weights = {"int8": QuantType.QInt8, "int4": QuantType.QInt4}
        quantize_static(
            str(source),
            str(written),
            _Reader(self.samples, self.progress),
            quant_format=QuantFormat.QDQ,
            per_channel=not recipe.per_tensor,
            activation_type=QuantType.QUInt8 if recipe.unsigned else QuantType.QInt8,
            weight_type=weights["int8" if recipe.group else recipe.weights],
            nodes_to_exclude=list(recipe.exclude),
            calibrate_method=CalibrationMethod[methods[recipe.method]],
            extra_options=_options(recipe),
        )


def _options(recipe: Recipe) -> dict[str, object]:
    """A recipe as onnxruntime's further options."""
    from onnxruntime.quantization import QuantType

    overrides: dict[str, dict[str, object]] = {
        name: {"rmin": np.float32(low), "rmax": np.float32(high)}
        for name, (low, high) in recipe.ranges.items()
    }
    for name in recipe.bits16:
        overrides.setdefault(name, {})["quant_type"] = QuantType.QInt16
    return {
        "ActivationSymmetric": recipe.symmetric,
        "CalibTensorRangeSymmetric": recipe.symmetric,
        "CalibPercentile": recipe.percentile,
        "CalibStridedMinMax": 1,  # whatever the method: a sample at a time
        "TensorQuantOverrides": {name: [each] for name, each in overrides.items()},
    }


class _Reader:
    """Samples as onnxruntime's calibration takes them: some of them at a time, so that what it
    keeps of a network's tensors is that of a few samples."""

    def __init__(self, samples: Samples, progress: Progress) -> None:
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
