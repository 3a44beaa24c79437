"""Models, compiled and quantized: ``vdla.compile``, ``vdla.quantize``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.api.host import timed_model
from vdla.boards import find_board
from vdla.compiler.build import Options
from vdla.compiler.frontend.files import onnx_file
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import Shapes, shapes_like
from vdla.compiler.models.accuracy import Accuracy, accuracy, check_labels, read_labels
from vdla.compiler.models.calibration import Pixels, Samples
from vdla.compiler.models.noise import Noise, layer_noise
from vdla.compiler.models.quantizer import (
    METHODS,
    NOISE_SAMPLES,
    Recipe,
    float_model,
    prepared_model,
    samples_for,
)
from vdla.compiler.models.quantizer import quantize as quantize_model
from vdla.isa.config import Config
from vdla.names.configs import resolve_on
from vdla.names.kinds import check_device
from vdla.names.models import model_file
from vdla.names.schedules import tuned_functions, tuned_tiles
from vdla.names.where import Code, Where
from vdla.options import Compile, Quantize, Run
from vdla.options.spelling import UsageError, require, takes
from vdla.runtime.devices.named import NAMES
from vdla.runtime.module import Module

if TYPE_CHECKING:
    from onnx import ModelProto


@takes(Compile)
def compile(model: str | Path, options: Compile) -> Module:
    """Compiles an ONNX file, or a bundled model by a name that ``vdla models`` lists; or a file of
    another kind that vdla reads: TFLite's, PyTorch's ``.pt2``, ``FILE.py:NAME``.

    The device ``cpu`` takes models of floats; those with an accelerator take QDQ models.

    Raises:
        ModelError: the model can't be taken.
        ConfigError: the config doesn't exist or describes no machine.
        BoardError, TargetError: no such board or processor, or the board can't have the config.
        UsageError: no such device.
    """
    check_device(options.device, NAMES)
    require(options)
    where = Where.of(options)
    board = find_board(options.board) if options.board else None
    code = where.code_to_ship(board.host if board else None)
    config = resolve_on(options.board, options.config, options.settings)
    how = replace(
        compile_options(options, where, code), vthreads=options.vthreads, dump=options.dump
    )
    host = where.described_host(code.processor)
    return timed_model(model_file(model), config, how, options.shapes, host)


def compile_to_run(path: Path, config: Config, options: Run) -> Module:
    """Compiles an ONNX file for the device that is to run it.

    Raises:
        As ``compile``.
    """
    where = Where.of(options)
    code = where.code_to_run()
    how, host = compile_options(options, where, code), where.described_host(code.processor)
    return timed_model(path, config, how, given_shapes(path, options), host)


def given_shapes(path: Path, options: Run) -> Shapes | None:
    """Sizes that an ONNX model leaves open: those given, or else the inputs' own."""
    if options.shapes or options.inputs is None:
        return options.shapes
    return shapes_like(load_onnx(path).graph, options.inputs)


def compile_options(options: Compile | Run, where: Where, code: Code) -> Options:
    """Options of a compilation by a user's options, which say where it runs, and the code's kind.

    Raises:
        RecordError: the tuned schedules' file holds something else.
        TargetError: there is no such architecture.
    """
    return replace(
        where.options(code, tuned_functions(options.records)),
        strict=options.strict,
        turns=options.turns,
        records=tuned_tiles(options.records, options.board),
        progress=options.progress,
    )


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
    floats = prepared_model(onnx_file(model), options.shapes, _recipe(options))
    pixels = Pixels(options.mean, options.std)
    samples = samples_for(floats, str(model), options.calibration, options.shapes, pixels)
    some = [samples[number] for number in range(min(len(samples), NOISE_SAMPLES))]
    return layer_noise(floats, load_onnx(quantized), some, options.progress)


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
    if options.labels is None or options.calibration is None:
        raise UsageError("--labels: expected labels and the samples that they are of, found none")
    floats = prepared_model(onnx_file(model), options.shapes)
    samples = _labelled(floats, str(model), options)
    labels = _labels(options.labels)
    before, after = (
        accuracy(each, samples, labels, options.progress) for each in (floats, load_onnx(quantized))
    )
    return before, after


def _labelled(floats: ModelProto, where: str, options: Quantize) -> Samples:
    """The samples of options with labels, of which there is one for each."""
    pixels = Pixels(options.mean, options.std)
    samples = samples_for(floats, where, options.calibration, options.shapes, pixels)
    assert isinstance(samples, Samples)
    assert options.labels is not None
    named = isinstance(options.labels, str | Path)
    check_labels(_labels(options.labels), samples, str(options.labels) if named else "labels")
    return samples


def _labels(labels: str | Path | Sequence[int]) -> Sequence[int]:
    """Labels, or those in a file."""
    return read_labels(Path(labels)).tolist() if isinstance(labels, str | Path) else labels


def quantize(model: str | Path, output: str | Path, options: Quantize | None = None) -> None:
    """Writes the QDQ form of a float model, in a file of any kind that ``compile`` takes, to
    ``output``; without ``options`` on random samples.

    Raises:
        ModelError: the model or the samples don't fit, or a size is open and no samples have it.
    """
    options = options or Quantize()
    require(options)
    if options.calibrate not in METHODS:
        expected = ", ".join(METHODS)
        raise UsageError(f"--calibrate: expected one of {expected}, found {options.calibrate}")
    if options.labels is not None:  # before hours of calibration
        _labelled(float_model(onnx_file(model), options.shapes), str(model), options)
    quantize_model(
        onnx_file(model), output, options.calibration, options.shapes, _recipe(options),
        Pixels(options.mean, options.std), options.progress,
    )  # fmt: skip


def _recipe(options: Quantize) -> Recipe:
    """The recipe that options describe."""
    return Recipe(
        options.calibrate, options.percentile, options.per_tensor, options.symmetric,
        ranges=options.ranges or {}, exclude=options.exclude,
        equalize=options.equalize, correct_bias=options.correct_bias,
    )  # fmt: skip
