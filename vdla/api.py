"""The Python API: what the ``vdla`` command does, as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.comparison import Comparison, Progress, compare_models, find_workload
from vdla.compiler import models
from vdla.compiler.build import Options, compile_model, place_models
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import Shapes, shapes_like
from vdla.compiler.models import quantize
from vdla.compiler.placement.partition import device_of
from vdla.compiler.tune.records import BUNDLED, Log, Records
from vdla.compiler.tune.records import load_own as load_records
from vdla.compiler.tune.tuner import Task, TuneOptions, make_tasks
from vdla.compiler.tune.tuner import tune as tune_tasks
from vdla.isa.config import Config, load_config, parse_config
from vdla.published import published
from vdla.runtime.devices.base import Device
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.rtl import RtlDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.errors import DeviceError
from vdla.runtime.executor import Executor, RunResult
from vdla.runtime.module import Module
from vdla.same_schedule import SameSchedule
from vdla.same_schedule import same_schedule as compare_hiding
from vdla.sweep import Sweep, sweep_latency

__all__ = [
    "compare", "compile", "executor", "load", "module_config", "quantize", "run", "same_schedule",
    "sweep", "tune",
]  # fmt: skip

Array = NDArray[Any]
DEVICES = ("sim", "rtl", "cpu")


def compile(
    model: str | Path,
    config: str | Path | Config = "paper",
    settings: Iterable[str] = (),
    options: Options | None = None,
    shapes: Shapes | None = None,
) -> Module:
    """Compiles a QDQ ONNX file or a bundled model.

    Args:
        model: a path, or a name that ``vdla models`` lists.
        config: a config, its name, or a TOML file.
        settings: ``KEY=VALUE`` overrides of the config or the memory.
        options: devices, virtual threads, dump folder, progress.
        shapes: sizes that the file leaves open, by name: an input's as a whole, or a symbolic
            dimension's: ``{"image": (1, 3, 224, 224)}``, ``{"batch": 4}``.

    Raises:
        ModelError: the model can't be taken.
        ConfigError: the config doesn't exist or describes no machine.
    """
    return compile_model(_model_file(model), resolve(config, settings), options, shapes)


def load(path: str | Path) -> Module:
    """Reads a ``.vdla`` file.

    Raises:
        ModuleError: it is not one, is damaged, or is for another machine.
    """
    return Module.load(path)


def run(
    model: Module | str | Path,
    inputs: Mapping[str, Array],
    device: str = "sim",
    config: str | Path | Config | None = None,
    shapes: Shapes | None = None,
) -> RunResult:
    """Runs a module or a model once.

    Args:
        model: a module, a ``.vdla`` or ONNX path, or a bundled name.
        inputs: one array per graph input, of its exact shape and dtype.
        device: ``sim``, ``rtl`` or ``cpu``.
        config: for an ONNX model, the accelerator (default ``paper``).
        shapes: for an ONNX model, the sizes that it leaves open, as for :func:`compile`; the
            inputs' own unless given.

    Raises:
        InputError: an input is missing, unknown, or has another shape or dtype.
    """
    if shapes is None and not isinstance(model, Module):
        shapes = open_shapes(model, inputs)
    module = as_module(model, device, config, shapes)
    return executor(module, device).run(inputs)


def compare(
    model: str | Path,
    config: str | Path | Config = "paper",
    vthreads: Sequence[int] = (1, 2),
    settings: Iterable[str] = (),
    progress: Progress = lambda what, done, total: None,
    records: Records | None = BUNDLED,
    shapes: Shapes | None = None,
) -> Comparison:
    """Latency hiding per layer of a model or of ``resnet18-convs``.

    ``records`` are tuned schedules; None compares what the analytic model chooses.
    """
    chosen = resolve(config, settings)
    found = compare_models(_model_files(model), chosen, vthreads, progress, records, shapes)
    return replace(found, published=published(model, chosen))


def sweep(
    model: str | Path,
    latencies: Sequence[int],
    config: str | Path | Config = "paper",
    vthreads: Sequence[int] = (1, 2),
    settings: Iterable[str] = (),
    progress: Progress = lambda what, done, total: None,
    records: Records | None = BUNDLED,
    shapes: Shapes | None = None,
) -> Sweep:
    """Latency hiding as memory gets slower: ``compare`` once per latency, in cycles."""
    chosen = resolve(config, settings)
    files = _model_files(model)
    found = sweep_latency(files, chosen, latencies, vthreads, progress, records, shapes)
    return replace(found, base=replace(found.base, published=published(model, chosen)))


def same_schedule(
    model: str | Path,
    config: str | Path | Config = "paper",
    vthreads: int = 2,
    settings: Iterable[str] = (),
    progress: Progress = lambda what, done, total: None,
    records: Records | None = BUNDLED,
    shapes: Shapes | None = None,
) -> SameSchedule:
    """Each layer's best schedule for ``vthreads``: as it is, serialized, and hiding less."""
    chosen = resolve(config, settings)
    work = find_workload(_model_files(model), chosen, shapes)
    return compare_hiding(work, chosen, vthreads, progress, records)


def tuned(choice: str | Path | None) -> Records | None:
    """Tuned schedules: the bundled ones, with those of a log; or, for "none", no schedules.

    Raises:
        RecordError: the file holds something else, or schedules for another instruction set.
        OSError: it can't be read.
    """
    if choice is None:
        return BUNDLED
    if str(choice) == "none":
        return None
    return BUNDLED.with_more(load_records(Path(choice)))


def tune(
    model: str | Path,
    log: str | Path,
    config: str | Path | Config = "paper",
    settings: Iterable[str] = (),
    options: TuneOptions | None = None,
    layer: str = "",
    shapes: Shapes | None = None,
) -> list[Task]:
    """Searches schedules for every accelerator layer of a model or of ``resnet18-convs``.

    Args:
        model: a path, or a name that ``vdla models`` lists.
        log: the records' file, made or gone on with.
        config: a config, its name, or a TOML file.
        settings: ``KEY=VALUE`` overrides of the config or the memory.
        options: trials, searcher, seed, workers, virtual threads.
        layer: the one layer to search for; all without it.
        shapes: sizes that the file leaves open, as for :func:`compile`.

    Raises:
        RecordError: the log holds something else, or another search writes to it.
        ModelError: the model can't be taken, or has no accelerator layer of that name.
    """
    options, chosen = options or TuneOptions(), resolve(config, settings)
    tasks = tuning_tasks(model, chosen, options.vthreads, layer, shapes)
    with Log(Path(log)) as opened:
        tune_tasks(tasks, chosen, opened, options)
    return tasks


def tuning_tasks(
    model: str | Path,
    config: Config,
    vthreads: Sequence[int],
    layer: str = "",
    shapes: Shapes | None = None,
) -> list[Task]:
    """What there is to search for in a model: its distinct layers, or one of them.

    Raises:
        ModelError: the model has no accelerator layer of that name.
    """
    placed = place_models(_model_files(model), config, shapes)
    found = [each for one in placed.values() for each in one.layers]
    wanted = [each for each in found if layer in ("", each[0])]
    if not wanted:
        names = ", ".join(dict.fromkeys(name for name, _ in found))
        raise ModelError(str(model), f"a layer {layer} for the accelerator", names or "none")
    return make_tasks(wanted, config, vthreads)


def resolve(config: str | Path | Config, settings: Iterable[str] = ()) -> Config:
    """A config from its name, its file, or itself, with settings applied."""
    if isinstance(config, Config):
        return config.override(settings)
    return load_config(config, settings)


def module_config(module: Module) -> Config:
    """The config and memory that a module was compiled for."""
    return parse_config(module.config, str(module.config.get("name", "module")), "module header")


def is_module(model: str | Path) -> bool:
    """Whether a file is a module by its name."""
    return str(model).endswith(".vdla")


def open_shapes(model: str | Path, inputs: Mapping[str, Array]) -> Shapes:
    """Shapes of some arrays, for the inputs of a model that leave sizes open; a module has none."""
    if is_module(model):
        return {}
    return shapes_like(load_onnx(_model_file(model)).graph, inputs)


def as_module(
    model: Module | str | Path,
    device: str,
    config: str | Path | Config | None,
    shapes: Shapes | None = None,
) -> Module:
    """The module itself, the file's, or the model compiled for the device."""
    if isinstance(model, Module):
        return model
    if is_module(model):
        return load(model)
    return compile(model, config or "paper", (), Options(device=device_of(device)), shapes)


def executor(
    module: Module,
    device: str,
    config: Config | None = None,
    *,
    waves: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Executor:
    """A module made ready on a device."""
    return Executor(module, make_device(module, device, config, waves=waves, report=report))


def make_device(
    module: Module,
    device: str,
    config: Config | None = None,
    *,
    waves: Path | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> Device:
    """The device by its name; simulator and RTL take the memory of ``config``, if given.

    ``waves``: an FST file that the RTL writes; ``report`` is told of its one build.
    """
    if device == "cpu":
        return CpuDevice()
    if device not in DEVICES:
        raise DeviceError(f"device: expected one of {', '.join(DEVICES)}, found {device}")
    own = module_config(module)
    own = replace(own, memory=config.memory) if config else own
    return RtlDevice(own, waves=waves, report=report) if device == "rtl" else SimDevice(own)


def random_inputs(module: Module, seed: int = 0) -> dict[str, Array]:
    """Standard normal inputs of a module's shapes, the same for a seed on every machine."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal(module.tensors[name].shape).astype(module.tensors[name].dtype)
        for name in module.inputs
    }


def _model_files(model: str | Path) -> dict[str, Path]:
    """Every network that a path or a bundled name stands for."""
    if str(model) in models.MODELS:
        return models.model_paths(str(model))
    return {Path(model).stem: _model_file(model)}


def _model_file(model: str | Path) -> Path:
    if str(model) in models.MODELS:
        try:
            return models.model_path(str(model))
        except KeyError:
            raise ModelError(str(model), "one network", "several; only compare takes it") from None
    path = Path(model)
    if not path.exists():
        known = ", ".join(models.MODELS)
        raise ModelError(str(model), f"an ONNX file or one of {known}", "neither")
    return path
