"""Designs, evaluated and searched for by a user's options: ``vdla.evaluate``,
``vdla.explore_designs``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.search.records import Log
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.explore import jobs
from vdla.explore.evaluate import BOUND, ENERGY, EXACT, MODEL, Evaluation, Evaluator
from vdla.explore.jobs import Evaluations
from vdla.explore.log import EvaluationLog, Key
from vdla.explore.mapped import with_mapped_areas
from vdla.explore.networks import Networks
from vdla.explore.search import Exploration, Search, SearchOptions
from vdla.explore.space import load_space
from vdla.explore.tuned import Tuner
from vdla.farm.processes import ProcessPool
from vdla.farm.work import JobPool
from vdla.names.configs import energy_table, resolve
from vdla.names.farms import farm_pool
from vdla.names.models import model_files
from vdla.names.schedules import tuned_tiles
from vdla.options import Evaluate, Explore
from vdla.options.spelling import UsageError, require, takes
from vdla.support.files import digest

Models = str | Path | Sequence[str | Path]


@takes(Evaluate)
def evaluate(models: Models, options: Evaluate) -> Evaluation:
    """Evaluation of a design: cycles of one or several models, area, and reasons against it.

    Raises:
        ModelError: a model can't be taken.
        ConfigError: the config doesn't exist or describes no machine.
        UsageError, ExploreError: no such level, part or weighted model.
    """
    return designs(models, options)(())


def designs(models: Models, options: Evaluate) -> Callable[[Sequence[str]], Evaluation]:
    """Function that evaluates the design of some options with further settings; models are imported
    once.

    Raises:
        ModelError, ConfigError, UsageError, ExploreError: as ``evaluate``.
    """
    if options.level not in (EXACT, MODEL, BOUND):
        raise UsageError(f"--level: expected exact, model or bound, found {options.level}")
    base, records = resolve(options.config, options.settings), tuned_tiles(options.records)
    judge = evaluator(models, options.weights, options.part, options.shapes)
    judge = replace(judge, table=energy_table(options.energy))

    def result(settings: Sequence[str]) -> Evaluation:
        config = base.override(settings)
        if options.level == EXACT:
            return judge.exact(config, records)
        return judge.bound(config) if options.level == BOUND else judge.model(config)

    return result


def evaluator(
    models: Models,
    weights: Mapping[str, float] | None = None,
    part: str = "none",
    shapes: Shapes | None = None,
) -> Evaluator:
    """Evaluator of designs for some models, which are imported now.

    Raises:
        ModelError: a model can't be taken.
        UsageError: a model is given twice, or a weight is of none.
    """
    given = [models] if isinstance(models, str | Path) else list(models)
    if not given:
        raise UsageError("models: expected at least one, found none")
    names, paths = dict[str, tuple[str, ...]](), dict[str, Path]()
    for model in given:
        files, name = model_files(model), Path(model).stem
        if name in names or not files.keys().isdisjoint(paths):
            raise UsageError(f"models: expected each once, found {name} twice")
        names[name] = tuple(files)
        paths |= files
    for name in weights or {}:
        if name not in names:
            raise UsageError(f"--weight: expected one of {', '.join(names)}, found {name}")
    return Evaluator(Networks(paths, shapes, kept=True), names, weights or {}, part)


@takes(Explore)
def explore_designs(models: Models, options: Explore) -> Exploration:
    """Searches a space for the designs that no other one beats in all objectives.

    Raises:
        ExploreError: no such space, objective or searcher, no legal design, or the log is another
            search's.
        ModelError: a model can't be taken.
        ConfigError: there is no such config.
        FarmError: the farm can't be reached.
        BoardError: yosys, which maps, is missing or fails.
        OSError: the log can't be written any more; every evaluation before is in it.
    """
    require(options)
    space, baseline = load_space(options.space), resolve(options.baseline)
    how = SearchOptions(
        tuple(options.objectives),
        options.searcher,
        options.budget,
        inf if options.time is None else options.time,
        options.seed,
        progress=options.progress,
    )
    how.check()
    table = energy_table(options.energy)
    if table is None and ENERGY in how.objectives:
        raise UsageError("--objectives: expected --energy TABLE for energy, found none")
    judge = evaluator(models, options.weights, options.part, options.shapes)
    judge = replace(judge, table=table, asked_mhz=space.asked_mhz)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        log = folder / "log" if options.log is None else Path(options.log)
        known = digest([], also=repr(table), digits=12) if table else ""
        key = Key.now(space.digest, judge.networks.digest, known)
        lines = stack.enter_context(EvaluationLog(log, key))
        pool = stack.enter_context(_pool(options))
        tuner = None
        if options.trials:
            tiles = stack.enter_context(Log(tiles_of(log), TileRecord))
            tuner = Tuner(judge.networks, tiles, pool, options.trials, options.progress)
        search = Search(space, Evaluations(judge, pool), how, lines)
        result = search.run(baseline, tuner)
    if options.mapped:
        return with_mapped_areas(result, options.part, options.progress)
    return result


def tiles_of(log: Path) -> Path:
    """Path of the tuned schedules of a log's designs: a log as ``vdla tune`` writes it."""
    return log.with_name(f"{log.name}.tiles")


def _pool(options: Explore) -> JobPool:
    if options.farm is not None:
        how = options.folder, options.without_encryption, options.report
        return farm_pool(options.farm, *how)
    return ProcessPool(options.workers, preload=(jobs.__name__,))
