"""Models quantized: ``vdla.quantize``, what that costs, and the search that costs least."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.api.models import compile_to_run
from vdla.api.modules import random_inputs
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.files import onnx_file
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.models.accuracy import Accuracy, accuracy, check_labels, read_labels
from vdla.compiler.models.calibration import Pixels, Samples, held_back
from vdla.compiler.models.frontier import Point, Search, chosen
from vdla.compiler.models.noise import Noise, layer_noise
from vdla.compiler.models.quantizer import (
    Quantizer,
    first_samples,
    float_model,
    prepared_model,
    samples_for,
)
from vdla.compiler.models.quantizer import quantize as quantize_model
from vdla.compiler.models.recipe import METHODS, PLAIN, WEIGHTS, Recipe
from vdla.compiler.models.scoring import SignalToNoise, Task, metric_of
from vdla.isa.config import Config
from vdla.names.configs import resolve_on
from vdla.options import Quantize, Run
from vdla.options.spelling import UsageError, chosen_by_ratio, group_of, require
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor
from vdla.support.files import atomic_write

if TYPE_CHECKING:
    from onnx import ModelProto

    from vdla.compiler.finetuning import Tuning
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.compiler.graph.types import Array

Told = Callable[[Point], None]
HELD_RATIO, HELD_LABELS = 4, 2  # a search measures on every so many-th batch of samples


@dataclass(frozen=True)
class Frontier:
    """Recipes that a search has tried: scores, in ``unit``, against cycles.

    ``floats`` is the score of the floats, ``wanted`` what was asked for, ``chosen`` the recipe that
    was written, ``config`` the name of the one whose cycles they are.
    """

    points: Sequence[Point]
    chosen: Point
    floats: float
    wanted: float
    unit: str
    config: str

    def to_json(self) -> dict[str, object]:
        """The search for JSON; a score of the floats beside which there is noise is None."""
        points = [
            {
                "recipe": point.name,
                "score": point.score,
                "cycles": point.cycles,
                "bytes": point.bytes,
                "bits16": point.wide,
                "chosen": point is self.chosen,
            }
            for point in self.points
        ]
        return {
            "config": self.config,
            "unit": self.unit,
            "floats": self.floats if isfinite(self.floats) else None,
            "wanted": self.wanted,
            "points": points,
        }


def quantize(
    model: str | Path, output: str | Path, options: Quantize | None = None
) -> Tuning | None:
    """Writes the QDQ form of a float model, in a file of any kind that ``compile`` takes, to
    ``output``; without ``options`` on random samples.

    Returns:
        With ``options.finetune``, the layers that were trained and what that has gained.

    Raises:
        ModelError: the model or the samples don't fit, or a size is open and no samples have it.
        TraceError: a layer is to be trained in front of an operator without a gradient.
    """
    options = options or Quantize()
    require(options)
    recipe = _recipe(options)
    if options.labels is not None:  # before hours of calibration
        _labelled(float_model(onnx_file(model), options.shapes), str(model), options)
    if options.finetune:
        return _finetuned(model, output, options, recipe)
    quantize_model(
        onnx_file(model), output, options.calibration, options.shapes, recipe, _pixels(options),
        options.progress,
    )  # fmt: skip
    return None


def _finetuned(model: str | Path, output: str | Path, options: Quantize, recipe: Recipe) -> Tuning:
    """Writes a model that was quantized and trained."""
    from vdla.compiler.finetuning import finetuned  # with all that traces and trains

    given, where = float_model(onnx_file(model), options.shapes), str(model)
    samples = samples_for(given, where, options.calibration, options.shapes, _pixels(options))
    quantizer = Quantizer(given, where, samples, _noted(samples, options), options.progress)
    first, floats = quantizer.quantized(recipe), quantizer.floats(recipe)
    layers = _layers_to_train(floats, first, samples, options, where)
    tuning = finetuned(floats, first, samples, layers, options.steps, where, options.progress)
    with atomic_write(Path(output)) as beside:
        beside.write_bytes(tuning.model.SerializeToString())
    return tuning


def _layers_to_train(
    floats: ModelProto, first: ModelProto, samples: Samples, options: Quantize, where: str
) -> set[str]:
    """The nodes whose weights are to be trained.

    Raises:
        ModelError: one that is named has no quantized weights.
    """
    from vdla.compiler.finetuning import layers_with_weights

    names, below = chosen_by_ratio("--finetune", options.finetune)
    known = layers_with_weights(first)
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ModelError(where, "a layer with quantized weights", f"{name}{hint}")
    if below == inf:
        return {*known}
    lost = set[str]()
    if below is not None:
        noise = layer_noise(floats, first, first_samples(samples), options.progress)
        lost = {each.name for each in noise.layers if each.own < below}
    return {*names} | lost & {*known}


def _noted(samples: Samples, options: Quantize) -> dict[str, tuple[int, ...]] | None:
    """Sizes to note in the file: those of the samples, where the model leaves some open."""
    sizes = {name: array.shape for name, array in samples[0].items()}
    return sizes if options.shapes else None


def quantization_noise(
    model: str | Path, quantized: str | Path, options: Quantize | None = None
) -> Noise:
    """The noise that a quantization added, layer by layer, on at most NOISE_SAMPLES samples.

    Args:
        model: of floats, in a file of any kind that ``compile`` takes.
        quantized: its QDQ form, as ``quantize`` wrote it.
        options: those with which it was quantized.

    Raises:
        ModelError: the model or the samples don't fit, or onnxruntime doesn't run it.
    """
    options = options or Quantize()
    return _noise(onnx_file(model), str(model), load_onnx(quantized), options, _recipe(options))


def frontier_noise(model: str | Path, frontier: Frontier, options: Quantize) -> Noise:
    """``quantization_noise`` of the recipe that a search has chosen."""
    best = frontier.chosen
    return _noise(onnx_file(model), str(model), best.model, options, best.recipe)


def _noise(
    file: Path, where: str, quantized: ModelProto, options: Quantize, recipe: Recipe
) -> Noise:
    given = float_model(file, options.shapes)
    samples = samples_for(given, where, options.calibration, options.shapes, _pixels(options))
    floats = prepared_model(file, options.shapes, recipe, samples)
    return layer_noise(floats, quantized, first_samples(samples), options.progress)


def quantization_accuracy(
    model: str | Path, quantized: str | Path, options: Quantize
) -> tuple[Accuracy, Accuracy]:
    """The accuracy of a classifier before and after it was quantized, on all samples.

    Args:
        model: of floats, in a file of any kind that ``compile`` takes.
        quantized: its QDQ form, as ``quantize`` wrote it.
        options: those with which it was quantized, with ``calibration`` and ``labels``.

    Raises:
        ModelError: the model, the samples or the labels don't fit.
        UsageError: no labels.
    """
    floats, samples, labels = _task(model, options)
    before, after = (
        accuracy(each, samples, labels, options.progress) for each in (floats, load_onnx(quantized))
    )
    return before, after


def quantization_score(
    model: str | Path, quantized: str | Path, options: Quantize
) -> tuple[float, float]:
    """The score of a network before and after it was quantized, by the function ``options.score``.

    Raises:
        ModelError: the model, the samples or the labels don't fit, or the function doesn't work.
        UsageError: no labels.
    """
    floats, samples, labels = _task(model, options)
    task = Task(samples, labels, _metric(options))
    return task(floats), task(load_onnx(quantized))


def search_quantization(
    model: str | Path,
    output: str | Path,
    options: Quantize,
    tried: Told = lambda point: None,
) -> Frontier:
    """Writes the QDQ form that costs the fewest cycles of those that lose no more than allowed.

    Recipes are tried in the order of their cost in cycles: repairs that cost none first, then 16
    bits for tensors that lose most. With labels the score may be ``options.drop`` below that of the
    floats; without, the outputs' signal-to-noise ratio has to be ``options.snr`` dB. Every fourth
    sample is held back to measure on, with labels every second one; the others calibrate.

    Args:
        model: of floats, in a file of any kind that ``compile`` takes.
        output: the file to write.
        options: with ``config``, whose cycles count.
        tried: is told of each recipe.

    Raises:
        ModelError: the model, the samples or the labels don't fit.
    """
    require(options)
    start, config = _recipe(options), resolve_on(None, options.config, options.settings)
    given = float_model(onnx_file(model), options.shapes)
    samples = samples_for(given, str(model), options.calibration, options.shapes, _pixels(options))
    seen, held = held_back(samples, HELD_RATIO if options.labels is None else HELD_LABELS)
    sizes = {name: array.shape for name, array in samples[0].items()}
    quantizer = Quantizer(given, str(model), seen, _noted(samples, options), options.progress)
    floats = quantizer.floats(PLAIN)
    score = _score(floats, held, options, samples)
    best = inf if options.labels is None else score(floats)
    wanted = options.snr if options.labels is None else best - options.drop

    def cost(network: ModelProto) -> tuple[int, int]:
        return _cost(network, config, sizes)

    points = Search(quantizer.quantized, score, cost, wanted, tried).run(start)
    result = chosen(points, wanted)
    with atomic_write(Path(output)) as beside:
        beside.write_bytes(result.model.SerializeToString())
    return Frontier(points, result, best, wanted, score.unit, config.name)


def _score(
    floats: ModelProto, held: Samples, options: Quantize, samples: Samples
) -> SignalToNoise | Task:
    """The measure of recipes, on the samples that are held back."""
    if options.labels is None:
        return SignalToNoise(floats, first_samples(held))
    check_labels(_labels(options), samples, _labels_name(options))
    return Task(held, _labels(options), _metric(options))


def _cost(network: ModelProto, config: Config, sizes: Shapes) -> tuple[int, int]:
    """Cycles of a quantized network, and the bytes of its constants on the accelerator."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "q.onnx"
        path.write_bytes(network.SerializeToString())
        module = compile_to_run(path, config, Run(shapes=sizes))
    result = Executor(module, make_device(module, "sim", config)).run(random_inputs(module))
    return result.cycles or 0, module.metadata["memory"]["constants"]


def _task(model: str | Path, options: Quantize) -> tuple[ModelProto, Samples, Array]:
    """The floats, folded, the samples and their labels."""
    if options.labels is None or options.calibration is None:
        raise UsageError("--labels: expected labels and the samples that they are of, found none")
    floats = prepared_model(onnx_file(model), options.shapes)
    samples = _labelled(floats, str(model), options)
    return floats, samples, _labels(options)


def _labelled(floats: ModelProto, where: str, options: Quantize) -> Samples:
    """The samples of options with labels, of which there is one for each."""
    samples = samples_for(floats, where, options.calibration, options.shapes, _pixels(options))
    check_labels(_labels(options), samples, _labels_name(options))
    return samples


def _labels_name(options: Quantize) -> str:
    """Beginning of an error about labels."""
    return str(options.labels) if isinstance(options.labels, str | Path) else "labels"


def _labels(options: Quantize) -> Array:
    """Labels, or those in a file: a class for each sample, or what ``--score`` makes of them."""
    import numpy as np

    assert options.labels is not None
    if isinstance(options.labels, str | Path):
        return read_labels(Path(options.labels), any_shape=options.score is not None)
    return np.asarray(options.labels)


def _metric(options: Quantize) -> Callable[..., float] | None:
    """The user's function of outputs and labels."""
    return metric_of(options.score) if isinstance(options.score, str) else options.score


def _pixels(options: Quantize) -> Pixels:
    return Pixels(options.mean, options.std)


def _recipe(options: Quantize) -> Recipe:
    """The recipe that options describe.

    Raises:
        UsageError: a choice that there isn't.
    """
    weights, group = group_of(options.weights)
    for option, known, value in (
        ("--calibrate", METHODS, options.calibrate),
        ("--weights", WEIGHTS, weights),
    ):
        if value not in known:
            raise UsageError(f"{option}: expected one of {', '.join(known)}, found {value}")
    if group and options.per_tensor:
        raise UsageError(
            f"--weights {options.weights}: expected scales of channels, found --per-tensor"
        )
    names, below = chosen_by_ratio("--bits16", options.bits16)
    floats, floats_below = chosen_by_ratio("--exclude", options.exclude)
    return Recipe(
        options.calibrate, options.percentile, options.per_tensor, options.symmetric,
        ranges=options.ranges or {}, exclude=floats, floats_below=floats_below,
        bits16=names, bits16_below=below, weights=weights, group=group,
        equalize=options.equalize, smooth=options.smooth, gptq=options.gptq,
        correct_bias=options.correct_bias,
    )  # fmt: skip
