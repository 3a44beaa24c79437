"""Models, compiled, run, checked, compared and tuned: ``vdla.compile``, ``vdla.run`` and others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vdla.analysis.comparison import Comparison, compare_models, find_workload
from vdla.analysis.difference import Check, per_cluster, per_layer, relative_bound, whole
from vdla.analysis.profile import Profile
from vdla.analysis.profile import profile as profiled
from vdla.analysis.published import published
from vdla.analysis.same_schedule import SameSchedule
from vdla.analysis.same_schedule import same_schedule as compare_hiding
from vdla.analysis.sweep import Sweep, sweep_latency
from vdla.api.host import Host, host_by, timed_model, times_of
from vdla.api.modules import random_inputs, refuse_native
from vdla.api.tuning import TASKS, check_target, function_tasks, search, tile_tasks
from vdla.boards import find_board
from vdla.boards.board import Bitstream, Board
from vdla.boards.connect import connect
from vdla.boards.flows import find_flow, folder_of
from vdla.compiler.build import Options, import_graph
from vdla.compiler.frontend.onnx import is_quantized
from vdla.compiler.frontend.onnx import load as load_onnx
from vdla.compiler.frontend.shapes import Shapes, shapes_like
from vdla.compiler.graph.passes import optimize
from vdla.compiler.models.quantizer import quantize as quantize_model
from vdla.compiler.placement import PROCESSOR, device_of
from vdla.compiler.schedule import Schedule
from vdla.compiler.search.records import Log
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord, TileRecords
from vdla.compiler.targets.accelerator.search.tile_task import TileTask
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.function_task import FunctionTask
from vdla.compiler.te import Tensor
from vdla.isa.config import Config
from vdla.isa.identity import isa_hash, other_isa
from vdla.names.configs import energy_table, resolve, resolve_on
from vdla.names.models import is_module, model_file, model_files
from vdla.names.schedules import tuned_functions, tuned_tiles
from vdla.names.targets import check_placement, compile_target, gpu_of, host_of
from vdla.options import Compare, Compile, Quantize, Run, Synth, Tune
from vdla.options.spelling import UsageError, require, takes
from vdla.runtime.devices.board import BoardDevice
from vdla.runtime.devices.named import NAMES, make_device, module_config
from vdla.runtime.dtypes import STORED
from vdla.runtime.executor import Executor, RunResult, check_inputs
from vdla.runtime.module import Module

__all__ = [
    "check", "compare", "compile", "load", "prepare", "quantize", "run", "same_schedule", "sweep",
    "synth", "tune",
]  # fmt: skip

Array = NDArray[Any]


@takes(Compile)
def compile(model: str | Path, options: Compile) -> Module:
    """Compiles an ONNX file, or a bundled model by a name that ``vdla models`` lists.

    The device ``cpu`` takes models of floats; those with an accelerator take QDQ models.

    Raises:
        ModelError: the model can't be taken.
        ConfigError: the config doesn't exist or describes no machine.
        BoardError, TargetError: no such board or processor, or the board can't have the config.
        UsageError: no such device.
    """
    if options.device not in NAMES:
        raise UsageError(f"--device: expected one of {', '.join(NAMES)}, found {options.device}")
    require(options)
    host, machine = host_of(options.host, options.device)
    check_placement(options.placement, host)
    board = find_board(options.board) if options.board else None
    named = options.target or (board.host if board and machine is None else None)
    target, code_for = compile_target(named, options.device, machine)
    config = resolve_on(options.board, options.config, options.settings)
    functions = tuned_functions(options.records)
    compile_options = Options(
        device=device_of(options.device),
        host=host,
        places=options.places or {},
        strict=options.strict,
        vthreads=options.vthreads,
        records=tuned_tiles(options.records, options.board),
        functions=functions,
        gpu=gpu_of(options.gpu, options.device, host, functions),
        dump=options.dump,
        progress=options.progress,
        processor=code_for,
        target=target,
    )
    timed = host_by(machine, code_for, options.placement)
    return timed_model(model_file(model), config, compile_options, options.shapes, timed)


def load(path: str | Path) -> Module:
    """Reads a ``.vdla`` file.

    Raises:
        ModuleError: it is not one, is damaged, or is for another machine.
    """
    return Module.load(path)


@takes(Run)
def run(model: Module | str | Path, options: Run) -> RunResult:
    """Runs a module, a ``.vdla`` or ONNX file, or a bundled model once; on random inputs unless
    some are given.

    Raises:
        InputError: an input is missing, unknown, or has another shape or dtype.
        UsageError: options that don't go together, or a module for another config.
        DeviceError, BoardError, LinkError: the device can't be used.
    """
    require(options)
    ready, _ = prepare(model, options)
    return ready.run(random_inputs(ready.module) if options.inputs is None else options.inputs)


def prepare(model: Module | str | Path, options: Run) -> tuple[Executor, Config]:
    """A model made ready to run as often as you like, and the config it runs on."""
    board = _board(options)
    require(options, check=True)  # it may be a check that the model is made ready for
    if options.waves and options.device != "rtl":
        raise UsageError(
            f"--trace {options.waves}: expected --device rtl for waves, found {options.device}"
        )
    named = options.config or (board.config if board and not is_module(model) else None)
    if isinstance(model, Module) or is_module(model):
        module, config = _own_config(model, named, options)
    else:
        if options.no_native:
            raise UsageError(f"--no-native: expected a module, found the model {model}")
        config = resolve_on(options.board, named, options.settings)
        module = _compiled_for(model, config, options)
    if board is None:
        device = make_device(
            module, options.device, config, waves=options.waves, report=options.report
        )
        return Executor(module, device, options.threads), config
    transport = connect(
        board, config, port=options.port, virtual=options.virtual, report=options.report
    )
    return Executor(module, BoardDevice(config, transport), options.threads), config


def _board(options: Run) -> Board | None:
    """The board to run on, for the device that is one."""
    known = (*NAMES, "board")
    if options.device not in known:
        raise UsageError(f"--device: expected one of {', '.join(known)}, found {options.device}")
    if options.device == "board":
        if options.board is None:
            raise UsageError("--device board: expected --board B, found none")
        return find_board(options.board)
    return None


def _own_config(
    model: Module | str | Path, named: str | Path | Config | None, options: Run
) -> tuple[Module, Config]:
    """A module and its config, which the one named must be; memories may differ."""
    built = {
        "shape": options.shapes,
        "records": options.records,
        "target": options.target,
        "place": options.places,
        "host": options.host if options.host != PROCESSOR else None,
        "gpu": options.gpu if options.gpu != "opencl" else None,
        "placement": options.placement if options.placement != "capability" else None,
        "strict": options.strict or None,
    }
    for option in (option for option, value in built.items() if value is not None):
        what = "a module" if isinstance(model, Module) else f"the module {model}"
        raise UsageError(f"--{option}: expected an ONNX model, found {what}")
    module = model if isinstance(model, Module) else load(model)
    if options.no_native:
        refuse_native(module, "module" if isinstance(model, Module) else str(model))
    own = module_config(module)
    config = resolve(named, options.settings) if named else own.override(options.settings)
    name = "module" if isinstance(model, Module) else model
    if module.identity.isa != isa_hash(own):
        raise UsageError(f"{name}: {other_isa(isa_hash(own), module.identity.isa)}")
    if config.hash != module.identity.config:
        raise UsageError(
            f"{name}: expected config {config.name} ({config.hash}), "
            f"found a module for {own.name} ({module.identity.config})"
        )
    return module, config


def _compiled_for(model: str | Path, config: Config, options: Run) -> Module:
    """An ONNX model compiled for the device."""
    compile_options, host = _compile_options(options)
    shapes = given_shapes(model, options)
    return timed_model(model_file(model), config, compile_options, shapes, host)


def _compile_options(options: Run) -> tuple[Options, Host | None]:
    """How a model that is to be run is compiled, and the host whose time is modelled, if any."""
    host, machine = host_of(options.host, options.device)
    check_placement(options.placement, host)
    target, code_for = compile_target(options.target, options.device)
    functions = tuned_functions(options.records)
    result = Options(
        device=device_of(options.device),
        host=host,
        places=options.places or {},
        strict=options.strict,
        records=tuned_tiles(options.records, options.board),
        functions=functions,
        gpu=gpu_of(options.gpu, options.device, host, functions),
        progress=options.progress,
        processor=code_for,
        target=target,
    )
    return result, host_by(machine, code_for, options.placement)


def given_shapes(model: str | Path, options: Run) -> Shapes | None:
    """Sizes that an ONNX model leaves open: those given, or else the inputs' own."""
    if options.shapes or options.inputs is None:
        return options.shapes
    return shapes_like(load_onnx(model_file(model)).graph, options.inputs)


@takes(Run)
def check(model: Module | str | Path, options: Run) -> Check:
    """Compares an ONNX model with onnxruntime, layer by layer and as a whole; on random inputs
    unless some are given.

    A model of floats has no layers with steps to count: it is compared as a whole alone.

    Raises:
        UsageError: a module, which has no ONNX file to compare with.
    """
    if isinstance(model, Module) or is_module(model):
        result = "a module" if isinstance(model, Module) else str(model)
        raise UsageError(f"--check: expected an ONNX model to compare with, found {result}")
    require(options, check=True, input=options.inputs is not None)
    ready, config = prepare(model, options)
    module = ready.module
    for name in (*module.inputs, *module.outputs):
        if (dtype := module.tensors[name].dtype) in STORED:
            expected = "inputs and outputs of types that onnxruntime exchanges with numpy"
            raise UsageError(f"--check: expected {expected}, found {name} of {dtype}")
    options.report("comparing every layer with onnxruntime, each fed onnxruntime's tensors")
    path, shapes = model_file(model), given_shapes(model, options)
    if given := [*options.batches, *([options.inputs] if options.inputs is not None else [])]:
        for each in given:
            check_inputs(module, each)
        inputs = [dict(each) for each in given]
    else:
        inputs = [random_inputs(module, seed) for seed in range(options.samples)]
    compile_options, _ = _compile_options(options)
    imported = import_graph(path, compile_options, shapes)
    graph = optimize(imported)
    layers = per_layer(graph, path, inputs[0], config, compile_options, options.device)
    if compile_options.accelerated:
        layers += per_cluster(imported, inputs[0], config, compile_options, options.device)
    quantized = is_quantized(load_onnx(path))
    return Check(layers, whole(graph, path, ready, inputs), quantized, relative_bound(graph))


@takes(Run)
def profile(model: Module | str | Path, options: Run) -> Profile:
    """Where the time of running a model goes, step by step, on random inputs unless some are given.

    Raises:
        As ``run``.
    """
    require(options, profile=True)
    ready, _ = prepare(model, options)
    given = random_inputs(ready.module) if options.inputs is None else options.inputs
    return profiled(ready, given)


@takes(Compare)
def compare(model: str | Path, options: Compare) -> Comparison:
    """Latency hiding per layer of a model or of ``resnet18-convs``.

    Raises:
        UsageError: several latencies, for which there is ``sweep``.
    """
    _at_one_latency(options)
    chosen, tuned = _compared(options)
    table, files = energy_table(options.energy), model_files(model)
    times = times_of(files, options.host, chosen, options.shapes)
    result = compare_models(
        files, chosen, options.vthreads, options.progress, tuned, options.shapes
    )
    known = published(model, chosen)
    return replace(result, published=known, energy_table=table, host_time=times)


def _compared(options: Compare) -> tuple[Config, TileRecords | None]:
    """The config that is compared on, and tuned schedules."""
    config = resolve_on(options.board, options.config, options.settings)
    return config, tuned_tiles(options.records, options.board)


@takes(Compare)
def sweep(model: str | Path, options: Compare) -> Sweep:
    """Latency hiding as memory gets slower: ``compare`` once for each of ``latencies``, in cycles.

    Raises:
        UsageError: no latencies.
    """
    if not options.latencies:
        raise UsageError("--latency: expected some latencies, found none")
    chosen, tuned = _compared(options)
    table, files = energy_table(options.energy), model_files(model)
    times, known = times_of(files, options.host, chosen, options.shapes), published(model, chosen)
    result = sweep_latency(
        files, chosen, options.latencies, options.vthreads, options.progress, tuned, options.shapes
    )
    base = replace(result.base, published=known, energy_table=table, host_time=times)
    return replace(result, base=base)


@takes(Compare)
def same_schedule(model: str | Path, options: Compare) -> SameSchedule:
    """Each layer's best schedule for the most virtual threads: as it is, and hiding less.

    Raises:
        UsageError: several latencies, for which there is ``sweep``.
    """
    _at_one_latency(options)
    chosen, tuned = _compared(options)
    work = find_workload(model_files(model), chosen, options.shapes)
    return compare_hiding(work, chosen, max(options.vthreads), options.progress, tuned)


def _at_one_latency(options: Compare) -> None:
    if options.latencies:
        raise UsageError("--latency: expected vdla.sweep for memory latencies, found another")


def quantize(model: str | Path, output: str | Path, options: Quantize | None = None) -> None:
    """Writes the QDQ form of a float model to ``output``; without ``options`` on random samples.

    Raises:
        ModelError: the model or the samples don't fit, or a size is open and no samples have it.
    """
    options = options or Quantize()
    quantize_model(model, output, options.calibration, options.shapes)


@takes(Tune)
def tune(
    model: str | Path | Schedule | Tensor, options: Tune
) -> list[TileTask] | list[FunctionTask]:
    """Searches schedules for every accelerator layer of a model or of ``resnet18-convs``; with the
    target ``cpu`` or ``gpu``, for every function of a model on this processor or the GPU at hand;
    with ``cpu`` also for a kernel of te: a schedule, a tensor or FILE.py:FUNCTION.

    Raises:
        RecordError: the log holds something else, or another search writes to it.
        ModelError: the model can't be taken, or has no accelerator layer of that name.
        KernelError: there is no such kernel, or it lacks sizes.
        UsageError: no such searcher, target or strategy.
        BoardError, DeviceError: a board to measure on can't be reached, or is for another config.
        FarmError: no board is left that answers; the log has what was measured.
    """
    check_target(model, options)
    if options.target in TASKS:
        functions = function_tasks(model, options)
        with Log(Path(options.log), FunctionRecord) as function_log:
            search(functions, options, function_log)
        return functions
    assert not isinstance(model, Schedule | Tensor)  # which check_target refuses here
    tiles = tile_tasks(model, options)
    with Log(Path(options.log), TileRecord) as tile_log:
        search(tiles, options, tile_log)
    return tiles


@takes(Synth)
def synth(board: str, options: Synth) -> Bitstream:
    """A bitstream for a board, or a project for its vendor's tool; area and timing.

    Raises:
        BoardError: no such board or toolchain, or a tool is missing or fails.
        ConfigError: the config doesn't exist or describes no machine.
    """
    chosen = find_board(board)
    flow = find_flow(chosen, options.toolchain)
    machine = resolve(options.config or chosen.config, options.settings)
    return flow(chosen, machine, folder_of(chosen, machine, options.out), options.progress)
