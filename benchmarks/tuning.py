"""Schedule search on ResNet-18's convolutions: trials to 98 % of the best known, and what it wins.

    python benchmarks/tuning.py --cache F [-c CONFIG] [--limit N] [--seeds N] [--searchers …]

Every searcher starts from nothing: no default schedule, no records. A run ends at its first
schedule within 98 % of the best that any run, or the bundled records, know for the layer; a run
that doesn't get there in --limit trials counts as more than that. As in `vdla tune`, a searcher
that learns is never asked about tiles that can't be faster than its best. Random and grid search
get no such help: every tile they come by is a trial, though the benchmark doesn't measure those
that can't be within 98 %. Measurements are kept in the cache, a log as `vdla tune` writes it, and
shared by all searchers; a benchmark that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from vdla.api.tuning import tile_tasks
from vdla.compiler.search.measurer import Measurer, local_pool
from vdla.compiler.search.records import Log
from vdla.compiler.search.searchers import LEARNED, GridSearcher, RandomSearcher, Searcher
from vdla.compiler.search.tuner import TuneOptions
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.accelerator.search.tile_task import TileTask
from vdla.compiler.targets.accelerator.search.transfer import TransferData
from vdla.isa.config import load_config
from vdla.options import Tune

NEAR = 0.98
OPTIMAL = 0.995  # of the bound: nobody needs to look for a better one
BATCH = 8
LONG = 96  # trials of the search that looks for the best schedule
BLIND = (RandomSearcher, GridSearcher)  # what they measure changes nothing about what comes next
TAUGHT = "model, taught"  # by the records of the other layers

Measure = Callable[[TileTask, Sequence[int]], list[float]]


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    names = f"{LEARNED},{TAUGHT},genetic,random,grid".replace(", ", "+")
    parser.add_argument("--searchers", default=names)
    asked = parser.parse_args()
    searchers = [name.replace("+", ", ") for name in asked.searchers.split(",")]
    config = load_config(asked.config)
    tasks = tile_tasks("resnet18-convs", Tune(asked.cache, config))
    number = {task.layers[0]: n for n, task in enumerate(tasks)}
    meters = [task.meter for task in tasks]
    console = Console()
    with Log(asked.cache, TileRecord) as log, local_pool(meters, asked.workers) as pool:
        measurer = Measurer(meters, pool)
        costs = _remembered(tasks, log.records)

        def measure(task: TileTask, points: Sequence[int]) -> list[float]:
            known = costs[task.layers[0]]
            new = [p for p in points if p not in known]
            tiles = [task.space.candidates[p] for p in new]
            for position, outcome in measurer.run(number[task.layers[0]], tiles):
                log.append(task.record(tiles[position], outcome))
                known[new[position]] = outcome.cost
            return [known[p] for p in points]

        for task in tasks:
            console.print(f"{task.layers[0]}: looking for the best", style="dim")
            measure(task, task.known_good(log.records))
            bound = task.bound / OPTIMAL
            reach(task, _searcher(task, LEARNED, 0, []), measure, bound, LONG)
        trials: dict[str, dict[str, list[float]]] = {}
        for name in searchers:
            for task in tasks:
                trials.setdefault(name, {})[task.layers[0]] = [
                    _trials(task, name, seed, measure, costs, log.records, asked.limit)
                    for seed in range(1 if name == "grid" else asked.seeds)
                ]
                result = trials[name][task.layers[0]]
                counts = " ".join(_count(each, asked.limit) for each in result)
                console.print(f"{name} on {task.layers[0]}: {counts}", style="dim")
        for name in searchers:  # again, from memory: a later run may have raised the bar
            for task in tasks:
                trials[name][task.layers[0]] = [
                    _trials(task, name, seed, measure, costs, log.records, asked.limit)
                    for seed in range(len(trials[name][task.layers[0]]))
                ]
    _print_trials(console, tasks, trials, asked.limit)
    _print_gains(console, tasks, costs)


def reach(task: TileTask, searcher: Searcher, measure: Measure, goal: float, limit: int) -> float:
    """Trials until the first schedule of at most ``goal`` cycles; infinity beyond ``limit``."""
    tried, best = 0, inf
    while tried < limit and (points := searcher.propose(min(BATCH, limit - tried))):
        result = measure(task, points)
        for position, cost in enumerate(result):
            if cost <= goal:
                return tried + position + 1
        searcher.update(dict(zip(points, result, strict=True)))
        tried, best = tried + len(points), min(best, *result)
        if not isinstance(searcher, BLIND):
            searcher.rule_out(task.pruned(best))
    return inf


def _trials(
    task: TileTask,
    name: str,
    seed: int,
    measure: Measure,
    costs: dict[str, dict[int, float]],
    records: Sequence[TileRecord],
    limit: int,
) -> float:
    """Trials of one run to the best known; measuring may find a better one, which then counts."""
    floor = task.features.floor
    while True:
        best = min(costs[task.layers[0]].values())

        def hopeful(task: TileTask, points: Sequence[int]) -> list[float]:
            measured = [p for p in points if floor[p] <= best / NEAR]
            result = dict(zip(measured, measure(task, measured), strict=True))
            return [result.get(p, inf) for p in points]

        searcher = _searcher(task, name, seed, records)
        each = hopeful if isinstance(searcher, BLIND) else measure
        needed = reach(task, searcher, each, best / NEAR, limit)
        if min(costs[task.layers[0]].values()) == best:
            return needed


def _searcher(task: TileTask, name: str, seed: int, records: Sequence[TileRecord]) -> Searcher:
    task.transfer = TransferData()
    how = TuneOptions(searcher=name.split(",")[0], seed=seed)
    return task.searcher(how, records if name == TAUGHT else [])


def _remembered(
    tasks: Sequence[TileTask], records: Sequence[TileRecord]
) -> dict[str, dict[int, float]]:
    """Cycles by layer and point that the cache holds."""
    costs: dict[str, dict[int, float]] = {task.layers[0]: {} for task in tasks}
    by_workload = {task.workload: task for task in tasks}
    for record in records:
        task = by_workload.get(record.workload)
        known = task.recall(record) if task is not None else None
        if task is not None and known is not None:
            tile, outcome = known
            point = task.space.point(tile)
            if point is not None:
                costs[task.layers[0]][point] = outcome.cost
    return costs


def _print_trials(
    console: Console,
    tasks: Sequence[TileTask],
    trials: dict[str, dict[str, list[float]]],
    limit: int,
) -> None:
    table = Table("layer", "space", *trials, title="trials to 98 % of the best known: median")
    for task in tasks:
        name = task.layers[0]
        cells = [_count(median(item[name]), limit) for item in trials.values()]
        table.add_row(name, f"{len(task.space):,}", *cells)
    papers = [[runs for name, runs in item.items() if name != "C1"] for item in trials.values()]
    table.add_section()
    layers = [median(map(median, layers)) for layers in papers]
    table.add_row("median of C2–C12", "", *(_count(each, limit) for each in layers))
    pooled = [median(n for runs in layers for n in runs) for layers in papers]
    table.add_row("of all their runs", "", *(_count(each, limit) for each in pooled))
    console.print(table)


def _count(value: float, limit: int) -> str:
    return f"> {limit}" if value == inf else f"{value:g}"


def _print_gains(
    console: Console, tasks: Sequence[TileTask], costs: dict[str, dict[int, float]]
) -> None:
    table = Table("layer", "default", "best known", "default is slower by", "measured")
    for task in tasks:
        known = costs[task.layers[0]]
        default, best = known[task.space.point(task.default)], min(known.values())
        slower = f"{100 * (default / best - 1):.1f} %"
        table.add_row(task.layers[0], f"{default:,.0f}", f"{best:,.0f}", slower, f"{len(known):,}")
    console.print(table)


if __name__ == "__main__":
    main()
