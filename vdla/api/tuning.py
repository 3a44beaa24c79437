"""Schedules, searched for by a user's options: ``vdla.tune``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from vdla.boards import find_board
from vdla.boards.meter import SECONDS as BOARD_SECONDS
from vdla.boards.meter import BoardMeter, board_ports, check_boards
from vdla.boards.reached import resource
from vdla.compiler.build import Options, place_models, placed_graphs
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.placement import PROCESSOR
from vdla.compiler.schedule import Schedule
from vdla.compiler.search import tuner
from vdla.compiler.search.cost_model import ModelKind
from vdla.compiler.search.measurer import CANDIDATE_SECONDS, Meter, local_pool
from vdla.compiler.search.outcomes import AnyOutcome
from vdla.compiler.search.points import Candidate
from vdla.compiler.search.ranker import XGBOOST, load_xgboost
from vdla.compiler.search.records import AnyRecord, Log
from vdla.compiler.search.searchers import LEARNED
from vdla.compiler.search.tuner import Task, TuneOptions
from vdla.compiler.targets.accelerator.search import tile_task
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.accelerator.search.tile_task import TileTask
from vdla.compiler.targets.gpu.description import GPU, Gpu
from vdla.compiler.targets.gpu.search import tasks as gpu_tasks
from vdla.compiler.targets.gpu.search.function import functions_of as gpu_functions
from vdla.compiler.targets.processor.description.processor import find_processor
from vdla.compiler.targets.processor.search import tasks as processor_tasks
from vdla.compiler.targets.processor.search.function import functions_of as processor_functions
from vdla.compiler.targets.search import function_task
from vdla.compiler.targets.search.function import distinct
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.function_task import FunctionTask
from vdla.compiler.te import Tensor
from vdla.farm.work import FarmError, JobPool
from vdla.isa.config import Config
from vdla.kernels.user import KernelError, is_kernel, kernel_function
from vdla.names.configs import resolve, resolve_on
from vdla.names.farms import farm_pool
from vdla.names.models import model_file, model_files
from vdla.options import Tune
from vdla.options.devices import PROCESSORS
from vdla.options.spelling import UsageError, require, takes
from vdla.runtime.gpu.opencl import find_gpu
from vdla.runtime.native import missing_features

ACCELERATOR, CPU = "accelerator", "cpu"  # targets of a search, beside GPUs and other processors
TASKS: Mapping[str, Any] = {**dict.fromkeys(PROCESSORS, processor_tasks), GPU: gpu_tasks}
TARGETS = (ACCELERATOR, *TASKS)
COST_MODELS = (XGBOOST.name, "tree")


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


def check_target(model: object, options: Tune) -> None:
    """Raises UsageError where there is no such target, it takes no such option or no kernels, or
    this machine lacks its instructions."""
    _one_of("--target", options.target, TARGETS)
    require(options)
    if is_kernel(model) and options.target not in PROCESSORS:
        known = ", ".join(PROCESSORS)
        raise UsageError(
            f"--target: expected one of {known} for a kernel of te, found {options.target}"
        )
    if options.target in PROCESSORS and options.target != CPU and options.farm is None:
        processor = find_processor(options.target)
        if missing := missing_features(processor.triple, processor.features):
            needed = ", ".join(missing)
            raise UsageError(
                f"--target {options.target}: expected a processor with {needed}, found one without "
                "them; use --target cpu"
            )


def machine(options: Tune) -> Config:
    """The config that is searched for: the one named, else the board's, else ``paper``.

    Raises:
        BoardError: there is no such board, or its memory can't carry what the config's core sends.
        ConfigError: the config doesn't exist or describes no machine.
    """
    return resolve_on(options.board, options.config, options.settings)


def tile_tasks(model: str | Path, options: Tune) -> list[TileTask]:
    """Tasks of a search for a model: its distinct layers, or one of them; measured on boards, if
    one is named, of which each was asked what it is.

    Raises:
        ModelError: the model has no accelerator layer of that name.
        UsageError: no such searcher.
        BoardError, DeviceError: a board can't be reached, or is built for another config.
    """
    check_searcher(options, tile_task.SEARCHERS)
    config = machine(options)
    placed = place_models(model_files(model), config, options.shapes)
    layers = [each for one in placed.values() for each in one.layers]
    wanted = [each for each in layers if options.layer in ("", each[0])]
    if not wanted:
        names = ", ".join(dict.fromkeys(name for name, _ in layers))
        layer = f"a layer {options.layer} for the accelerator"
        raise ModelError(str(model), layer, names or "none")
    if options.board is None:
        return tile_task.tile_tasks(wanted, config, options.vthreads)
    if options.farm is None:
        check_boards(find_board(options.board), config, _ports(options))
    meter = partial(BoardMeter, board=options.board)
    return tile_task.tile_tasks(wanted, config, options.vthreads, meter)


def function_tasks(model: str | Path | Schedule | Tensor, options: Tune) -> list[FunctionTask]:
    """Tasks of a search on a processor, or on the GPU at hand: a model's distinct functions, or one
    layer's; or a kernel.

    Raises:
        ModelError: the model has no such layer with schedules to choose from.
        KernelError: the kernel can't be taken, or has no schedules to choose from.
        DeviceError: there is no GPU.
        UsageError: no such searcher or strategy.
    """
    _one_of("--strategy", options.strategy, TASKS[options.target].STRATEGIES)
    check_searcher(options, function_task.SEARCHERS)
    functions = functions_of(model, options)
    needs = () if options.farm is None else (resource_of(options.target),)
    make = partial(TASKS[options.target].function_tasks, threads=options.threads, needs=needs)
    wanted = [f for f in functions if not options.layer or options.layer in f.layers]
    tasks: list[FunctionTask] = make(wanted, options.strategy)
    if not tasks and is_kernel(model):
        raise KernelError(
            f"{functions[0].layers[0]}: expected a kernel that --strategy {options.strategy} can "
            "schedule, found nothing to vary in it; try the other strategy"
        )
    if not tasks:
        others = make(functions, options.strategy)
        names = ", ".join(name for task in others for name in task.layers)
        what = f"a layer {options.layer}" if options.layer else "layers"
        expected = f"{what} that --strategy {options.strategy} can schedule"
        raise ModelError(str(model), expected, names or "none")
    return tasks


def resource_of(target: str) -> str:
    """The resource that workers of a farm have who can time a target's functions."""
    return "gpu" if target == GPU else f"cpu:{target}"


def functions_of(model: str | Path | Schedule | Tensor, options: Tune) -> Sequence[Any]:
    """A network's distinct functions on a processor, or on the GPU at hand; or a kernel.

    Raises:
        ModelError: the model can't be taken.
        KernelError, ScheduleError: the kernel can't be.
        DeviceError: there is no GPU.
    """
    processor = find_processor(options.target if options.target in PROCESSORS[1:] else "native")
    if isinstance(model, Schedule | Tensor) or is_kernel(model):
        return [kernel_function(model, options.shapes, processor)]
    graph = import_onnx(model_file(model), options.shapes, floats=True)
    if options.target in PROCESSORS:
        how = Options(device=PROCESSOR, processor=processor)
        placed = placed_graphs(graph, resolve("paper"), how)
        return distinct(f for g, p, _ in placed for f in processor_functions(g, p, processor))
    gpu = Gpu.of(find_gpu())
    placed = placed_graphs(graph, resolve("paper"), Options(device=GPU, gpu=gpu))
    return distinct(f for g, p, _ in placed for f in gpu_functions(g, p, gpu))


def search(
    tasks: Sequence[Task[Candidate, AnyOutcome, AnyRecord]], options: Tune, log: Log[AnyRecord]
) -> None:
    """Searches for some tasks, from and into a log that is open.

    Raises:
        FarmError: no board is left that answers.
        OSError: the log can't be written any more; every record before is in it.
    """
    how = TuneOptions(
        trials=options.trials,
        searcher=options.searcher,
        seed=options.seed,
        workers=options.workers,
        cost_model=cost_model(options.cost_model),
        timeout=CANDIDATE_SECONDS if options.board is None else BOARD_SECONDS,
        progress=options.progress,
    )
    with _pool([task.meter for task in tasks], options) as pool:
        try:
            tuner.tune(tasks, log, how, pool)
        except FarmError as error:
            text = f"{error}; the same command goes on from {log.path}"
            raise FarmError(text) from None


def _pool(
    meters: Sequence[Meter[Candidate, AnyOutcome]], options: Tune
) -> AbstractContextManager[JobPool | None]:
    """A farm, or processes that have a board each; None where processes without will do."""
    if options.farm is not None:
        how = options.folder, options.without_encryption, options.report
        return farm_pool(options.farm, *how)
    if options.board is None:
        return nullcontext()
    boards = _boards(options)
    return local_pool(meters, len(boards), boards)


def _ports(options: Tune) -> list[str]:
    """Ports of the boards that measure.

    Raises:
        BoardError: ports that don't go with such boards, or none is found.
        UsageError: a number of processes, of which each board has one.
    """
    assert options.board is not None
    board = find_board(options.board)
    if options.workers != Tune.workers and not options.virtual:
        raise UsageError(
            f"--workers: expected --virtual, found {options.workers} with --board {board.name}; "
            "each board has one process"
        )
    return board_ports(board, options.ports, options.workers if options.virtual else 0)


def _boards(options: Tune) -> list[dict[str, str]]:
    """Resources that each process has to itself: one of the boards."""
    return [{resource(str(options.board)): port} for port in _ports(options)]


def _one_of(option: str, actual: str, known: Iterable[str]) -> None:
    """Raises UsageError where an option has none of its values."""
    if actual not in known:
        raise UsageError(f"{option}: expected one of {', '.join(known)}, found {actual}")


def check_searcher(options: Tune, known: Iterable[str]) -> None:
    """Raises UsageError where there is no such searcher or cost model, and the ranker's error
    without XGBoost."""
    if options.searcher in COST_MODELS:
        raise UsageError(
            f"--searcher: expected one of {', '.join(known)}, found {options.searcher}, which is a "
            "--cost-model"
        )
    _one_of("--searcher", options.searcher, known)
    _one_of("--cost-model", options.cost_model, COST_MODELS)
    if options.searcher == LEARNED and options.cost_model == XGBOOST.name:
        load_xgboost()


def cost_model(name: str) -> ModelKind:
    """The kind of cost models of a name in ``COST_MODELS``."""
    if name == XGBOOST.name:
        return XGBOOST
    from vdla.compiler.tree_rnn import TREE  # with all that traces and trains

    return TREE
