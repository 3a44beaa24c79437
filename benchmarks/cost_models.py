"""Cost models of the schedule search: XGBoost, which sees features, and TreeRNN, which sees loops.

    python benchmarks/cost_models.py --cache F [--target cpu] [--networks N,N,N] [--layers 2]
        [--trials 48] [--seeds 3] [--samples 48] [--searchers random,xgboost,tree,…] [--plot SVG]

Of each network's distinct layers ``--layers`` are taken that are spread evenly over it, but none
whose bound is above ``--cycles``, or that has fewer than four schedules for each trial.

The first table is of candidates drawn at random: Spearman's correlation of scores and costs on a
layer that a model learned nothing of, from all others, and on the rest of a layer's own after 16
and 32 of them; and the milliseconds for a training, and for the prediction of one candidate, with
all that a model has to see of it. The second table has the trials until a schedule is within 95 %
and 98 % of the best known, the median of layers and seeds, and ``--plot`` draws the best found over
the best known against trials (TVM, OSDI'18, figure 12). Every search starts from nothing. Names
with ``+floor`` search as ``vdla tune`` does, among the accelerator's tiles whose lower bounds are
low; the others draw from all.

With ``--target cpu`` costs are times of functions on this processor, over the default schedule's.
Measurements are kept in the cache, a log as ``vdla tune`` writes it, and shared by all searchers; a
benchmark that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich import table as rich
from rich.console import Console

from vdla.analysis.plots import Line, save_panels
from vdla.api.tuning import cost_model, function_tasks, tile_tasks
from vdla.compiler.search.cost_model import ModelKind, Shown
from vdla.compiler.search.forest import Forest
from vdla.compiler.search.measurer import Measurer, local_pool
from vdla.compiler.search.points import Floats
from vdla.compiler.search.records import Log
from vdla.compiler.search.searchers import LEARNED, ModelSearcher, Searcher
from vdla.compiler.search.table import Features, Table
from vdla.compiler.search.tuner import Task, TuneOptions
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.accelerator.search.tile_task import TileTask
from vdla.compiler.targets.accelerator.search.tile_view import TileView
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.options import Tune

NEAR = (0.95, 0.98)  # shares of the best known that searches are timed to
BATCH = 8
SCORED = 256  # tiles of which the time of a prediction is the mean
FLOOR = "+floor"
NAMES = {"xgboost": "XGBoost", "tree": "TreeRNN"}
OWN = (16, 32)  # candidates of a layer that a model learns from before it ranks its others
WIDE = 140  # characters of a table
ON_TILES = {"accelerator": True, "cpu": False}  # targets, and whether they have tiles
AnyTask = Task[Any, Any, Any]


@dataclass(frozen=True)
class Picked:
    """Some points of a space as cost models see them, numbered from 0."""

    shown: Shown
    points: Sequence[int]

    def features(self, points: Sequence[int]) -> Features:
        return self.shown.features([self.points[p] for p in points])

    def trees(self, points: Sequence[int]) -> Forest:
        return self.shown.trees([self.points[p] for p in points])


@dataclass
class Layer:
    """A layer or function: its task, as it is shown to models, and the costs known by point."""

    network: str
    task: AnyTask
    shown: Shown
    costs: dict[int, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.network} {self.task.layers[0]}"

    @property
    def best(self) -> float:
        return min(self.costs.values())


@dataclass
class Bench:
    """Layers, and who measures them into a log."""

    layers: Sequence[Layer]
    measurer: Measurer[Any, Any]
    log: Log[Any]

    def measure(self, number: int, points: Sequence[int]) -> list[float]:
        """The costs of a layer's points, which the log may have."""
        layer = self.layers[number]
        new = [p for p in points if p not in layer.costs]
        candidates = [layer.task.space.candidate(p) for p in new]
        for position, outcome in self.measurer.run(number, candidates):
            self.log.append(layer.task.record(candidates[position], outcome))
            layer.costs[new[position]] = outcome.cost
        return [layer.costs[p] for p in points]


# How well they rank ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranking:
    """Correlations of a model on held-out layers, and on a layer's own by how many it learned from;
    and the seconds of a training and of the prediction of one candidate."""

    held_out: Sequence[float]
    own: Mapping[int, Sequence[float]]
    fit: float
    predict: float


def ranking(bench: Bench, name: str, samples: int) -> Ranking:
    """Measures random candidates of each layer, learns from some and ranks others."""
    kind, groups = cost_model(name), list[tuple[Picked, Floats]]()
    for number, layer in enumerate(bench.layers):
        points = drawn(layer, samples, 0)
        groups.append((Picked(layer.shown, points), np.array(bench.measure(number, points))))
    held_out, fits, predicted = [], [], []
    own: dict[int, list[float]] = {count: [] for count in OWN}
    for number, (shown, costs) in enumerate(groups):
        others = [each for n, each in enumerate(groups) if n != number]
        legal = np.flatnonzero(np.isfinite(costs)).tolist()
        model = kind.over(shown, 0, others)
        model.fit({})  # compiled, where that is to be done
        fits.append(seconds(lambda: model.fit({})))
        held_out.append(spearman(model.score(legal), -costs[legal]))
        predicted.append(prediction(bench.layers[number], kind, others))
        for count in OWN:
            model = kind.over(shown, 0, [])
            model.fit({p: costs[p] for p in range(count) if costs[p] < inf})
            rest = [p for p in legal if p >= max(OWN)]
            own[count].append(spearman(model.score(rest), -costs[rest]))
    return Ranking(held_out, own, median(fits), median(predicted))


def drawn(layer: Layer, count: int, seed: int) -> list[int]:
    """Points of a layer at random, fewer where there are no more."""
    space = layer.task.space
    return space.draw((), min(count, len(space)), np.random.default_rng(seed))


def prediction(layer: Layer, kind: ModelKind, others: Sequence[tuple[Picked, Floats]]) -> float:
    """Seconds for a candidate among many to be seen and scored."""
    count = SCORED if isinstance(layer.task, TileTask) else BATCH
    points = drawn(layer, count, 1)
    times = []
    for _ in range(2):  # the first time, functions may be compiled
        shown, begun = anew(layer, points), time.perf_counter()
        model = kind.over(shown, 0, others)
        made = time.perf_counter() - begun
        model.fit({})
        times.append(made + seconds(lambda: model.score(range(len(points)))))
    return min(times) / len(points)


def anew(layer: Layer, points: Sequence[int]) -> Shown:
    """Some points of a layer, numbered from 0, of which nothing was seen yet."""
    task = layer.task
    if isinstance(task, TileTask):
        tiles = [task.space.candidate(p) for p in points]
        return TileView(task.meter.operator.template, Table.of(tiles), task.meter.config)
    task.rows.clear()
    task.grown.clear()
    return Picked(task, points)


def seconds(what: Callable[[], object]) -> float:
    """Time of a call."""
    begun = time.perf_counter()
    what()
    return time.perf_counter() - begun


def spearman(a: Floats, b: Floats) -> float:
    """The correlation of ranks; equal values share theirs. NaN where all are equal."""
    ranks = []
    for values in (a, b):
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[places])
    flat = any(np.ptp(each) == 0 for each in ranks)
    return nan if flat else float(np.corrcoef(*ranks)[0, 1])


# How soon they find -------------------------------------------------------------------------------


def searcher(layer: Layer, name: str, seed: int) -> Searcher:
    """The search of a name, from nothing."""
    task, model = layer.task, name.removesuffix(FLOOR)
    if model not in NAMES:
        return task.searcher(TuneOptions(searcher=model, seed=seed), [])
    how = TuneOptions(searcher=LEARNED, seed=seed, cost_model=cost_model(model))
    if isinstance(task, TileTask):
        floor = task.features.floor if name.endswith(FLOOR) else np.zeros(len(task.space))
        over = how.cost_model.over(task.view, seed, [])
        return ModelSearcher(task.space, seed, floor, over)
    return task.searcher(how, [])


def searched(bench: Bench, number: int, name: str, seed: int, trials: int) -> list[float]:
    """The least cost after each trial of a search."""
    layer, least, result = bench.layers[number], inf, list[float]()
    search = searcher(layer, name, seed)
    while len(result) < trials and (points := search.propose(min(BATCH, trials - len(result)))):
        costs = bench.measure(number, points)
        search.update(dict(zip(points, costs, strict=True)))
        for cost in costs:
            least = min(least, cost)
            result.append(least)
        if name.endswith(FLOOR) and isinstance(layer.task, TileTask):
            search.rule_out(layer.task.pruned(least))
    return result + [least] * (trials - len(result))


def trials_to(share: float, curve: Sequence[float], best: float) -> float:
    """Trials of a search until it is at a share of the best known; infinity where it never was."""
    return next((n for n, cost in enumerate(curve, 1) if best >= share * cost), inf)


Curves = Mapping[str, Mapping[str, Sequence[list[float]]]]  # by searcher, and by layer; per seed


def all_curves(bench: Bench, names: Sequence[str], seeds: int, trials: int) -> Curves:
    """The least costs after each trial of every search."""
    result: dict[str, dict[str, list[list[float]]]] = {}
    for name in names:
        for number, layer in enumerate(bench.layers):
            print(f"{name} on {layer.name}", file=sys.stderr, flush=True)
            runs = [searched(bench, number, name, seed, trials) for seed in range(seeds)]
            result.setdefault(name, {})[layer.name] = runs
    return result


# What is told -------------------------------------------------------------------------------------


def show_ranking(console: Console, rankings: Mapping[str, Ranking]) -> None:
    """Prints correlations and times."""
    heads = ("held-out layers", *(f"{n} of its own" for n in OWN), "training", "prediction")
    table = rich.Table("Spearman", *heads, title="ranks of random candidates: mean (least)")
    for name, each in rankings.items():
        groups = (each.held_out, *(each.own[n] for n in OWN))
        cells = (f"{np.nanmean(group):.3f} ({np.nanmin(group):.2f})" for group in groups)
        times = f"{1e3 * each.fit:,.0f} ms", f"{1e3 * each.predict:.3f} ms"
        table.add_row(NAMES[name], *cells, *times)
    console.print(table)


def show_trials(console: Console, layers: Sequence[Layer], curves: Curves, trials: int) -> None:
    """Prints how many trials it took, and how far a search came."""
    shares = ", ".join(f"{100 * near:.0f} %" for near in NEAR)
    title = f"median trials to {shares} of the best known, and the share that {trials} trials found"
    table = rich.Table("layer", "space", *map(label, curves), title=title)
    for layer in layers:
        cells = [cell([(layer, runs[layer.name])], trials) for runs in curves.values()]
        table.add_row(layer.name, f"{len(layer.task.space):,}", *cells)
    table.add_section()
    every = [[(layer, runs[layer.name]) for layer in layers] for runs in curves.values()]
    table.add_row("all", "", *(cell(each, trials) for each in every))
    console.print(table)


def cell(runs: Sequence[tuple[Layer, Sequence[list[float]]]], trials: int) -> str:
    """Medians of trials, and the mean share of the best known that was found."""
    every = [(curve, layer.best) for layer, curves in runs for curve in curves]
    needed = [median(trials_to(near, *each) for each in every) for near in NEAR]
    counts = ", ".join(f"> {trials}" if n == inf else f"{n:g}" for n in needed)
    return f"{counts} ({np.mean([best / curve[-1] for curve, best in every]):.3f})"


def label(name: str) -> str:
    """A searcher's name for people."""
    model = name.removesuffix(FLOOR)
    return NAMES.get(model, model) + (", low floors" if name.endswith(FLOOR) else "")


def draw(path: Path, layers: Sequence[Layer], curves: Curves, title: str) -> None:
    """Draws the best found over the best known against trials, a panel for each network."""
    panels: dict[str, list[Line]] = {}
    for network in dict.fromkeys(layer.network for layer in layers):
        own = [layer for layer in layers if layer.network == network]
        for name, runs in curves.items():
            shares = [layer.best / np.array(c) for layer in own for c in runs[layer.name]]
            line = Line(label(name), [nan, *np.mean(shares, axis=0)])
            panels.setdefault(network, []).append(line)
    save_panels(path, panels, title, ("trials", "best found / best known"))


# What is searched ---------------------------------------------------------------------------------


def layers_of(asked: argparse.Namespace) -> list[Layer]:
    """Layers of each network, spread evenly over those that are worth a search."""
    result: list[Layer] = []
    for network in asked.networks.split(","):
        how = Tune(asked.cache, target=asked.target, strategy=asked.strategy)
        tasks: Sequence[AnyTask]
        tasks = tile_tasks(network, how) if ON_TILES[asked.target] else function_tasks(network, how)
        worth = [t for t in tasks if t.bound <= asked.cycles and len(t.space) >= 4 * asked.trials]
        count = min(asked.layers, len(worth))
        for task in (worth[(2 * n + 1) * len(worth) // (2 * count)] for n in range(count)):
            shown = task.view if isinstance(task, TileTask) else task
            result.append(Layer(network, task, shown))
    return result


def main() -> None:
    """Prints both tables and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--target", default="accelerator", choices=ON_TILES)
    parser.add_argument("--strategy", default="template")
    parser.add_argument("--networks", default="resnet18-convs,mobilenet,patches")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--cycles", type=float, default=250_000)
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=48)
    parser.add_argument("--searchers", default="random,xgboost,tree")
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    console, names = Console(width=WIDE), asked.searchers.split(",")
    kind = TileRecord if ON_TILES[asked.target] else FunctionRecord
    layers = layers_of(asked)
    if len(layers) < 2:
        parser.error(f"expected at least two layers, of which one is held out, found {len(layers)}")
    meters = [layer.task.meter for layer in layers]
    with Log(asked.cache, kind) as log, local_pool(meters, 2) as pool:
        for layer in layers:
            layer.task.resume(log.records)
            layer.costs.update({p: o.cost for p, o in layer.task.outcomes.items()})
        bench = Bench(layers, Measurer(meters, pool), log)
        for number, layer in enumerate(layers):
            bench.measure(number, layer.task.known_good([]))
        show_ranking(console, {name: ranking(bench, name, asked.samples) for name in NAMES})
        curves = all_curves(bench, names, asked.seeds, asked.trials)
    show_trials(console, layers, curves, asked.trials)
    if asked.plot:
        title = f"Search on {asked.target}: mean of {asked.layers} layers, {asked.seeds} seeds"
        draw(asked.plot, layers, curves, title)


if __name__ == "__main__":
    main()
