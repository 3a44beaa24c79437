"""What names stand for: a config, a model's files, tuned schedules; and random inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.boards import find_board, memory_of
from vdla.compiler import models
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.placement import GPU
from vdla.compiler.search.records import holds, load
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords, load_own
from vdla.compiler.targets.gpu.description import Gpu
from vdla.compiler.targets.gpu.named import named_gpu
from vdla.compiler.targets.processor.search import bundled
from vdla.compiler.targets.search.function_records import FunctionRecord, FunctionRecords
from vdla.isa.config import MEMORY, Config, load_config
from vdla.options.spelling import UsageError
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.errors import DeviceError
from vdla.runtime.gpu.find import find_gpu
from vdla.runtime.kernels import OPENCL
from vdla.runtime.module import Module, TensorInfo
from vdla.runtime.plan import Outside
from vdla.sim.energy import EnergyTable, load_table

Array = NDArray[Any]
Tuned = str | Path | TileRecords | FunctionRecords | None
UNSIGNED = ("uint4", "uint2")  # dtypes that are stored as others, without a sign


def resolve(config: str | Path | Config, settings: Iterable[str] = ()) -> Config:
    """A config from its name, its file, or itself, with settings applied.

    Raises:
        ConfigError: the config doesn't exist or describes no machine.
        UsageError: it is none of these, or the settings are no list.
    """
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise UsageError(f"settings: expected a list of KEY=VALUE, found {settings!r}")
    if isinstance(config, Config):
        return config.override(settings)
    _expect("config", "a config, its name or TOML file", config, str | Path)
    return load_config(config, settings)


def resolve_on(
    board: str | None, config: str | Path | Config | None, settings: Iterable[str] = ()
) -> Config:
    """A config in front of a board's memory, by default the board's; without a board, ``resolve``'s
    and by default ``paper``. Settings of the memory go before the board's.

    Raises:
        BoardError: there is no such board, or its memory can't carry what the config's core sends.
        ConfigError, UsageError: as ``resolve``.
    """
    if board is None:
        return resolve("paper" if config is None else config, settings)
    chosen = find_board(board)
    result = resolve(chosen.config if config is None else config, settings)
    if any(setting.startswith(MEMORY) for setting in settings):
        return result
    return replace(result, memory=memory_of(chosen, result))


def _expect(what: str, kinds: str, actual: object, types: Any) -> None:
    if not isinstance(actual, types):
        raise UsageError(f"{what}: expected {kinds}, found {type(actual).__name__}")


def energy_table(name: str | None) -> EnergyTable | None:
    """The energy table of a name or a file; None without one.

    Raises:
        EnergyError: there is no such table, or it is malformed.
    """
    return None if name is None else load_table(name)


def is_module(model: Module | str | Path) -> bool:
    """Whether it is a module, or a file that is one by its name.

    Raises:
        UsageError: it is neither a module nor a name.
    """
    kinds = "a module, a .vdla or ONNX file or a bundled name"
    _expect("model", kinds, model, Module | str | Path)
    return isinstance(model, Module) or str(model).endswith(".vdla")


def refuse_native(module: Module, name: str) -> None:
    """Raises UsageError where a module brings more than programs for the accelerator."""
    result = [f"onnxruntime's {step}" for step in module.external]
    if module.host:
        result.append(f"code for {module.host.triple}")
    if module.kernels:
        result.append("kernels for a GPU")
    result += dict.fromkeys(f"code for {s.target}" for s in module.steps if isinstance(s, Outside))
    if result:
        raise UsageError(
            f"--no-native: expected {name} to hold programs for the accelerator alone, "
            f"found {', '.join(result)}"
        )


def random_inputs(module: Module, seed: int = 0) -> dict[str, Array]:
    """Standard normal inputs of a module's shapes, the same for a seed on every machine.

    Where the elements are wider integers, which count or point at something, none is negative;
    indices lie within their axis.
    """
    rng = np.random.default_rng(seed)
    result = {name: _random(module.tensors[name], rng) for name in module.inputs}
    sizes = module.metadata.get("indices", {})
    return {name: x % sizes[name] if name in sizes else x for name, x in result.items()}


def _random(kind: TensorInfo, rng: np.random.Generator) -> Array:
    """Elements for one tensor."""
    values = np.asarray(rng.standard_normal(kind.shape))  # of no dimensions, a number
    dtype = dtype_of(kind.dtype)
    if dtype == np.bool_:
        return np.asarray(values > 0)
    wide = dtype.kind in "iu" and dtype.itemsize > 1
    positive = wide or kind.dtype in UNSIGNED
    return np.asarray(np.abs(values) if positive else values, dtype)


def model_files(model: str | Path) -> dict[str, Path]:
    """Every network that a path or a bundled name stands for."""
    if str(model) in models.MODELS:
        return models.model_paths(str(model))
    path = model_file(model)
    return {path.stem: path}


def model_file(model: str | Path) -> Path:
    """The one network that a path or a bundled name stands for.

    Raises:
        ModelError: there is none, or there are several.
        UsageError: it isn't a name.
    """
    if isinstance(model, Module):
        raise UsageError("model: expected an ONNX file or a bundled name, found a module")
    if is_module(model):
        raise UsageError(f"model: expected an ONNX file or a bundled name, found {model}")
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


def gpu_of(name: str, device: str, host: str, tuned: FunctionRecords | None) -> Gpu:
    """What a GPU's kernels are made of, by ``--gpu``'s name, and for which: any, or with tuned
    schedules the one at hand, if there is one.

    Raises:
        UsageError: neither the device nor its host is a GPU.
        TargetError: there is no such architecture.
    """
    takes_part = GPU in (device, host)
    if name != OPENCL and not takes_part:
        raise UsageError(
            f"--gpu {name}: expected --device gpu or --host gpu, found --device {device} and "
            f"--host {host}"
        )
    made = named_gpu(name)
    if tuned is None or tuned is bundled.BUNDLED or not takes_part:
        return made
    try:
        return Gpu.of(find_gpu(made.language), made.language, made.architecture)
    except DeviceError:
        return made


def tuned_tiles(choice: Tuned, board: str | None = None) -> TileRecords | None:
    """Tuned schedules for the accelerator: the bundled ones, with those of a log; or, for "none",
    no schedules. For a ``board``, what was measured on it goes before what was simulated.

    Raises:
        RecordError: the file holds something else, or schedules for another instruction set.
        OSError: it can't be read.
    """
    records = _tuned_tiles(choice)
    return records.on(board) if records and board else records


def _tuned_tiles(choice: Tuned) -> TileRecords | None:
    """Tuned schedules for the accelerator, wherever they were measured."""
    if choice is None or isinstance(choice, TileRecords | FunctionRecords):
        return choice if isinstance(choice, TileRecords) else BUNDLED
    if str(choice) == "none":
        return None
    path = Path(choice)
    return BUNDLED if holds(path, FunctionRecord) else BUNDLED.with_more(load_own(path))


def tuned_functions(choice: Tuned) -> FunctionRecords | None:
    """Tuned schedules for a processor: the bundled ones, with those of a log, if it holds such; or,
    for "none", no schedules.

    Raises:
        RecordError: the file holds something else.
        OSError: it can't be read.
    """
    if choice is None or isinstance(choice, TileRecords | FunctionRecords):
        return choice if isinstance(choice, FunctionRecords) else bundled.BUNDLED
    if str(choice) == "none":
        return None
    own = load(Path(choice), FunctionRecord) if holds(Path(choice), FunctionRecord) else []
    return bundled.BUNDLED.with_more(own) if own else bundled.BUNDLED
