"""Tuning the layers of a model: each distinct workload once, from and into a log of records.

What the log already holds counts as tried, so a search that was stopped goes on where it was. The
first trials are the schedules known without any search: the analytic default, the bundled one, and
what records of older sources found best. Records of other layers and configs teach the learned
searcher before its own first trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

import numpy as np

from vdla.compiler.search.searchers import LEARNED, UNTAUGHT, Group, ModelSearcher, Searcher
from vdla.compiler.search.table import Features, Table
from vdla.compiler.targets.accelerator.operators.nest import Floats
from vdla.compiler.targets.accelerator.operators.template import Operator, Tile
from vdla.compiler.tune.choose import default_tile
from vdla.compiler.tune.features import features
from vdla.compiler.tune.measure import TIMEOUT, Measurer, Outcome
from vdla.compiler.tune.records import BUNDLED, Log, Record, Records, make_tile
from vdla.compiler.tune.tile_space import tile_space
from vdla.compiler.tune.workload import Workload
from vdla.isa.config import Config, ConfigError
from vdla.isa.identity import isa_hash

Progress = Callable[[str, int, int], None]
Measure = Callable[[Sequence[Tile]], dict[int, Outcome]]


@dataclass(frozen=True)
class TuneOptions:
    """How to search.

    ``trials`` is the most candidates per workload, those in the log included; a search ends
    before that where the best is within ``enough`` of the bound. ``batch`` is how many are
    proposed at a time. ``timeout`` is in seconds per candidate. ``progress`` is told (what, done,
    of).
    """

    trials: int = 64
    searcher: str = "xgboost"
    seed: int = 0
    workers: int = 2
    vthreads: tuple[int, ...] = (2,)
    batch: int = 8
    timeout: float = TIMEOUT
    enough: float = 0.995
    progress: Progress = lambda what, done, total: None


@dataclass
class Task:
    """One workload, the layers that share it, and how its search stands.

    ``default`` is the analytic model's tile, ``costs`` the cycles of every tile tried, infinity
    where there are none; ``counts`` has the tiles by status, and ``resumed`` of them were in the
    log. ``ruled_out`` tiles weren't tried: they can't be faster than the best.
    """

    operator: Operator
    config: Config
    workload: Workload
    space: Table[Tile]
    layers: list[str]
    default: Tile
    costs: dict[Tile, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    resumed: int = 0
    ruled_out: int = 0

    @cached_property
    def features(self) -> Features:
        """What the learned model sees of every tile."""
        return features(self.operator.template, self.space, self.config)

    @property
    def trials(self) -> int:
        """Candidates tried, those in the log included."""
        return len(self.costs)

    @property
    def best(self) -> Tile:
        """The fastest tile tried; the default until there is one."""
        return min(self.costs, key=lambda tile: self.costs[tile], default=self.default)

    @property
    def bound(self) -> float:
        """Cycles that no schedule goes below: those of its multiply-adds or bytes alone."""
        op, config = self.operator, self.config
        return max(op.macs / config.macs_per_cycle, op.dram_bytes / config.bytes_per_cycle)

    def pruned(self, cycles: float) -> list[int]:
        """Points of the space that can't take fewer than ``cycles``, as their floor shows."""
        return np.flatnonzero(self.features.floor >= cycles).tolist()

    def cycles(self, tile: Tile) -> int | None:
        """Cycles of a tile, if it was tried and is legal."""
        cost = self.costs.get(tile, inf)
        return int(cost) if cost < inf else None

    def note(self, tile: Tile, outcome: Outcome) -> float:
        """Keeps what became of a tile; gives its cost in cycles, infinity for an illegal one."""
        self.counts[outcome.status] = self.counts.get(outcome.status, 0) + 1
        self.costs[tile] = inf if outcome.cycles is None else float(outcome.cycles)
        return self.costs[tile]


def make_tasks(
    operators: Sequence[tuple[str, Operator]], config: Config, vthreads: Sequence[int]
) -> list[Task]:
    """The distinct workloads of named layers; fewer threads where the work can't be shared out.

    A user's operator has the user's schedule, and nothing to search for.
    """
    tasks: dict[Workload, Task] = {}
    for name, op in operators:
        if not op.template.TUNED:
            continue
        for wanted in vthreads:
            default = default_tile(op.template, config, wanted, None)
            threads = default.vthreads
            workload = Workload.of(op.template, config, threads)
            if workload not in tasks:
                space = tile_space(op.template, config, threads)
                tasks[workload] = Task(op, config, workload, space, [], default)
            if name not in tasks[workload].layers:
                tasks[workload].layers.append(name)
    return list(tasks.values())


def tune(tasks: Sequence[Task], config: Config, log: Log, options: TuneOptions) -> None:
    """Searches every task's space; their ``costs``, ``counts`` and ``resumed`` are filled in.

    Raises:
        OSError: the log can't be written any more; every record before is in it.
        TuneDependencyError: the searcher needs a package that isn't there.
    """
    transfer = TransferData(log.records)
    operators = {str(number): task.operator for number, task in enumerate(tasks)}
    with Measurer(operators, config, options.workers, options.timeout) as measurer:
        for number, task in enumerate(tasks):

            def measure(tiles: Sequence[Tile]) -> dict[int, Outcome]:
                found: dict[int, Outcome] = {}
                for position, outcome in measurer.run(str(number), tiles):
                    log.append(_record(task, tiles[position], outcome))
                    found[position] = outcome
                    done = number * options.trials + task.trials + len(found)
                    options.progress(task.layers[0], done, len(tasks) * options.trials)
                return found

            searcher = make_searcher(task, transfer, options.searcher, options.seed)
            resume(task, searcher, log.records)
            options.progress(task.layers[0], number * options.trials, len(tasks) * options.trials)
            search(task, searcher, measure, options, known_good(task, log.records))
            transfer.add(log.records)


def make_searcher(task: Task, transfer: TransferData, name: str, seed: int) -> Searcher:
    """A searcher over a task's space; the learned one starts from measurements of its kind."""
    if name != LEARNED:
        return UNTAUGHT[name](task.space, seed)
    groups = transfer.groups(task.workload, task.features.names)
    return ModelSearcher(task.space, seed, task.features, groups)


def resume(task: Task, searcher: Searcher, records: Sequence[Record]) -> None:
    """Takes over what a log has of this workload under today's sources."""
    for record in records:
        if record.workload != task.workload or not record.fresh:
            continue
        tile = make_tile(record)
        point = None if tile is None else task.space.point(tile)
        if tile is not None and point is not None and tile not in task.costs:
            cost = task.note(tile, Outcome(record.status, record.cycles, record.note))
            searcher.update({point: cost})
    task.resumed = task.trials


def search(
    task: Task,
    searcher: Searcher,
    measure: Measure,
    options: TuneOptions,
    first: Sequence[int] = (),
) -> None:
    """Proposes and measures until the best is good enough, or trials or space are used up.

    A tile that can't be faster than the best one found is never tried.

    ``first`` are points to try before the searcher is asked.
    """
    points = [p for p in first if task.space.candidates[p] not in task.costs]
    while True:
        best = task.costs.get(task.best, inf)
        slower = task.pruned(best)
        searcher.rule_out(slower)
        task.ruled_out = sum(task.space.candidates[p] not in task.costs for p in slower)
        if task.trials >= options.trials or task.bound >= options.enough * best:
            return
        count = min(options.batch, options.trials - task.trials)
        points = points[:count] or searcher.propose(count)
        if not points:
            return
        found = measure([task.space.candidates[p] for p in points])
        # In the order of the proposals: which worker was faster must not matter.
        costs = [task.note(task.space.candidates[p], found[i]) for i, p in enumerate(points)]
        searcher.update(dict(zip(points, costs, strict=True)))
        points = []


def known_good(task: Task, records: Sequence[Record]) -> list[int]:
    """Points known without searching: the default, the bundled one, the records' best."""
    template, threads = task.operator.template, task.workload.vthreads
    logged = Records(lambda: records)
    tiles: list[Tile | None] = [task.default]
    tiles += [each.tile(template, task.config, threads) for each in (BUNDLED, logged)]
    points = (task.space.point(tile) for tile in tiles if tile is not None)
    return list(dict.fromkeys(point for point in points if point is not None))


def _record(task: Task, tile: Tile, outcome: Outcome) -> Record:
    return Record(task.workload, vars(tile), outcome.status, outcome.cycles, outcome.note)


class TransferData:
    """What the measurements of all workloads teach, as groups for the ranker."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        self.tables: dict[Workload, tuple[Features, Floats]] = {}
        self.add(records)

    def add(self, records: Sequence[Record]) -> None:
        """Takes in the records of the workloads that it doesn't know yet."""
        found: dict[Workload, dict[Tile, float]] = {}
        for record in records:
            tile = make_tile(record) if record.isa == isa_hash() else None
            if record.workload not in self.tables and tile is not None:
                cost = inf if record.cycles is None else float(record.cycles)
                found.setdefault(record.workload, {})[tile] = cost
        for workload, costs in found.items():
            try:
                seen = features(workload.like(), Table.of(list(costs)), workload.config)
            except (ConfigError, KeyError, TypeError):  # of a compiler with other templates
                continue
            self.tables[workload] = (seen, np.array(list(costs.values())))

    def groups(self, workload: Workload, names: Sequence[str]) -> list[Group]:
        """(features by these names, cycles) of every other workload of this kind."""
        return [
            (_columns(seen, names), cycles)
            for other, (seen, cycles) in self.tables.items()
            if other != workload and other.kind == workload.kind and np.isfinite(cycles).any()
        ]


def _columns(seen: Features, names: Sequence[str]) -> Floats:
    """Features by name; one that isn't there is missing, which the trees can take."""
    column = {name: i for i, name in enumerate(seen.names)}
    missing = np.full(len(seen.values), np.nan)
    return np.stack([seen.values[:, column[n]] if n in column else missing for n in names], axis=1)
