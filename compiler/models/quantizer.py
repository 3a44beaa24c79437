"""Post-training quantization: onnxruntime's static quantizer, QDQ format, and repairs around it.

floats    folded, equalized, smoothed                  ``Quantizer.floats``
recipe    tensors of 16 bits are chosen                ``Quantizer.with_wide_tensors``
recipe    nodes that stay floats are chosen            ``Quantizer.with_floats``
floats    biases corrected                             ``Quantizer.with_corrected_biases``
QDQ       onnxruntime's; weights rounded by inputs     ``Quantizer.made``
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.shapes import Shapes, known_shapes, note_shapes, static_shapes
from vdla.compiler.frontend.sizes import check_size
from vdla.compiler.frontend.sources import forget_source, source_of
from vdla.compiler.graph.types import Array
from vdla.compiler.models.calibration import Calibration, Pixels, Random, samples_of
from vdla.compiler.models.calibration import Samples as Batches
from vdla.compiler.models.floats import (
    PER_CHANNEL_OPSET,
    folded,
    input_kinds,
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
from vdla.compiler.models.rounding import LayerInputs, round_by_inputs
from vdla.support.files import atomic_write

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
    Quantizer(model, where, samples, noted, progress).write(recipe, Path(target))


def samples_for(
    model: onnx.ModelProto,
    where: str,
    calibration: Calibration | None,
    shapes: Shapes | None,
    pixels: Pixels,
) -> Batches:
    """The samples that a model is quantized with, see :func:`quantize`."""
    kinds = input_kinds(model, where)
    if calibration is not None:
        inputs = known_shapes(model.graph, where, shapes)
        return samples_of(calibration, inputs, pixels, where, kinds)
    sizes = static_shapes(model, where, shapes)
    for name, shape in sizes.items():
        if kinds[name] != "float32":
            expected = f"--calibration with samples of {kinds[name]}"
            raise ModelError(f"{where}: input {name}", expected, "none")
        check_size(f"{where}: input {name}", shape, "float32")
    return Random(sizes)


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
    quantizer = Quantizer(model, where or model.graph.name, samples, noted, progress)
    quantizer.write(recipe, Path(target))


def quantize_types(
    model: onnx.ModelProto, target: str | Path, samples: Samples, types: Sequence[str]
) -> None:
    """Writes what onnxruntime's quantizer by itself makes of a model: operators of some types, or
    of all that it knows, are quantized, and what it leaves in floats stays so.

    Raises:
        ModelError: onnxruntime can't.
    """
    quantizer = Quantizer(model, model.graph.name, samples)
    quantizer.write(Recipe(types=tuple(types), recurrent=False), Path(target))


class Quantizer:
    """A network of floats, and samples of it, quantized by one recipe after another.

    Recipes share what they can: prepared floats, what layers read, and the noise of rounding.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        where: str,
        samples: Samples,
        noted: Mapping[str, Sequence[int]] | None = None,
        progress: Progress = lambda what, done, total: None,
    ) -> None:
        """A quantizer whose errors open with ``where``, and whose files note the shapes ``noted``
        of inputs; see :func:`quantize`."""
        self.model, self.where, self.samples = model, where, samples
        self.noted, self.progress = noted, progress
        self._floats = dict[tuple[bool, bool, float], LayerInputs]()
        self._noise = list[tuple[Recipe, dict[str, float]]]()
        self._made = list[tuple[Recipe, onnx.ModelProto]]()

    def write(self, recipe: Recipe, target: Path) -> None:
        """Writes the QDQ form to a file, beside it first."""
        model = self.quantized(recipe)
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as beside:
            onnx.save(model, str(beside))

    def quantized(self, recipe: Recipe) -> onnx.ModelProto:
        """The QDQ form.

        Raises:
            ModelError: onnxruntime can't, or the recipe names what the model hasn't.
        """
        recipe.check(self.floats(recipe), self.where)
        return self.made(self.settled(recipe))

    def settled(self, recipe: Recipe) -> Recipe:
        """The recipe with names of all tensors and nodes that it chooses by their ratios."""
        if recipe.bits16_below is not None:
            recipe = self.with_wide_tensors(recipe)
        if recipe.floats_below is not None:
            recipe = self.with_floats(recipe)
        return recipe

    def floats(self, recipe: Recipe) -> onnx.ModelProto:
        """The floats that a recipe quantizes."""
        return self._inputs(recipe).floats

    def _inputs(self, recipe: Recipe) -> LayerInputs:
        key = (bool(recipe.group), recipe.equalize, recipe.smooth)
        if key not in self._floats:
            floats = _prepared(self.model, self.where, recipe, self.samples)
            forget_source(floats)
            self._floats[key] = LayerInputs(floats, self.some)
        return self._floats[key]

    @property
    def some(self) -> Samples:
        """Samples that noise is measured on."""
        return first_samples(self.samples)

    def with_wide_tensors(self, recipe: Recipe) -> Recipe:
        """The recipe with 16 bits for all tensors that lose more by 8 than it allows."""
        assert recipe.bits16_below is not None
        below = recipe.bits16_below
        plain = replace(
            recipe, bits16=(), bits16_below=None, floats_below=None, gptq=False, correct_bias=False
        )
        wide = [name for name, ratio in self._rounding(plain).items() if ratio < below]
        names = tuple(dict.fromkeys((*recipe.bits16, *wide)))
        return replace(recipe, bits16=names, bits16_below=None)

    def _rounding(self, recipe: Recipe) -> dict[str, float]:
        """The ratio that rounding leaves of each tensor."""
        for known, noise in self._noise:
            if known == recipe:
                return noise
        noise = rounding_noise(self.floats(recipe), self.made(recipe), self.some)
        self._noise.append((recipe, noise))
        return noise

    def with_floats(self, recipe: Recipe) -> Recipe:
        """The recipe without all nodes that lose more by themselves than it allows, and without
        those whose rounded results they read; and so on, as long as others are lost by that."""
        assert recipe.floats_below is not None
        below, own = recipe.floats_below, replace(recipe, floats_below=None, correct_bias=False)
        floats = self.floats(recipe)
        makers = {name: n.name for n in floats.graph.node for name in n.output}
        for _ in range(FLOAT_ROUNDS):
            first = self.made(own)
            noise = layer_noise(floats, first, self.some)
            lost = [each.name for each in noise.layers if each.own < below]
            read = [name for each in lost for name in rounded_before(floats, first, each)]
            lost += [makers[name] for name in read if name in makers]
            names = tuple(dict.fromkeys((*own.exclude, *lost)))
            if len(names) == len(own.exclude):
                break
            own = replace(own, exclude=names)
        return replace(own, correct_bias=recipe.correct_bias)

    def made(self, recipe: Recipe) -> onnx.ModelProto:
        """The QDQ form by a recipe that is settled."""
        for known, model in self._made:
            if known == recipe:
                return model
        floats = self.floats(recipe)
        if recipe.correct_bias:
            floats = self.with_corrected_biases(recipe)
        model = self._quantized(recipe, floats)
        self._made.append((recipe, model))
        return model

    def with_corrected_biases(self, recipe: Recipe) -> onnx.ModelProto:
        """Floats whose layers, quantized, have no mean error of their own."""
        floats, first = self.floats(recipe), self.made(replace(recipe, correct_bias=False))
        result = copy.deepcopy(floats)
        errors = mean_errors(floats, first, self.some, layer_axes(floats))
        correct_biases(result, errors)
        return result

    def _quantized(self, recipe: Recipe, floats: onnx.ModelProto) -> onnx.ModelProto:
        """The QDQ form of floats, which may have other biases than what the recipe begins with."""
        with tempfile.TemporaryDirectory() as folder, quiet():
            source, written = (Path(folder) / f"{name}.onnx" for name in ("folded", "q"))
            onnx.save(floats, str(source))
            try:
                self._run_onnxruntime(recipe, source, written)
                return self._finished(recipe, floats, onnx.load(str(written)))
            except ModelError:
                raise
            except Exception as error:  # onnxruntime has no common base class for its errors
                raise refusal(self.where, error, floats) from None

    def _finished(
        self, recipe: Recipe, floats: onnx.ModelProto, model: onnx.ModelProto
    ) -> onnx.ModelProto:
        """The file that onnxruntime has written, with all that it lacks."""
        inputs = self._inputs(recipe) if recipe.gptq else None
        if recipe.group:
            round_in_groups(model, floats, recipe.group, inputs, self.progress)
        elif inputs:
            round_by_inputs(model, inputs, self.progress)
        if recipe.recurrent and has_recurrent(floats):
            model = quantize_recurrent(model, recurrent_ranges(floats, self.samples))
        if self.noted:
            note_shapes(model, self.noted)
        return model

    def _run_onnxruntime(self, recipe: Recipe, source: Path, written: Path) -> None:
        from onnxruntime.quantization import (
            CalibrationMethod,
            QuantFormat,
            QuantType,
            quantize_static,
        )

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
            op_types_to_quantize=list(recipe.types) or None,
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
