"""Simulations that each searcher of `vdla explore` needs for 99 % of a space's hypervolume.

    python benchmarks/explore.py [--space small] [--models digits] [--objectives cycles,luts]
        [--cache build/explore-small.log] [--plot docs/images/explore.png] [--json]

The space is enumerated once, into a log that is gone on with; then every searcher runs on the table
with 10 seeds. The hypervolume is that of the objectives' logarithms, below the worst design, so a
factor counts as much wherever it is. ``bound, re-scored`` spends its simulations on the front of
the bounds, which no simulation has corrected.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import track
from rich.table import Table

from vdla.api.exploration import evaluator
from vdla.explore.evaluate import EXACT, MODEL, Outcome
from vdla.explore.jobs import Evaluations
from vdla.explore.log import EvaluationLog, Key, Line
from vdla.explore.pareto import front, hypervolume
from vdla.explore.problem import DesignProblem
from vdla.explore.registry import SEARCHERS
from vdla.explore.searchers import Vector
from vdla.explore.space import Point, load_space
from vdla.farm.processes import ProcessPool

SEEDS = 10
SHARE = 0.99  # of the hypervolume of all designs
ENOUGH = 0.995  # at which a search ends
BATCH = 4
REFERENCE = 1.01  # times the worst value of each objective


@dataclass
class Replay:
    """A problem whose every answer is in a table; ``asked`` counts estimates."""

    problem: DesignProblem
    exact: Mapping[Point, Vector]
    model: Mapping[Point, Vector]
    asked: int = 0

    @property
    def space(self):
        return self.problem.space

    def optimistic(self, point: Point) -> Vector | None:
        return self.problem.optimistic(point)

    def estimates(self, points: Sequence[Point]) -> list[Vector]:
        self.asked += len(points)
        return [self.model[point] for point in points]

    @cached_property
    def reference(self):
        legal = [v for v in self.exact.values() if all(map(isfinite, v))]
        return np.log(np.max(legal, axis=0) * REFERENCE)

    def volume(self, vectors: Sequence[Vector]) -> float:
        legal = [v for v in vectors if all(map(isfinite, v))]
        return hypervolume(np.log(np.array(legal)), self.reference) if legal else 0.0

    @cached_property
    def whole(self) -> float:
        return self.volume(list(self.exact.values()))


def enumerate_space(arguments: argparse.Namespace) -> Replay:
    """The table of a space; what the log lacks of it is evaluated now."""
    space = load_space(arguments.space)
    judge = replace(evaluator(arguments.models.split(",")), asked_mhz=space.asked_mhz)
    objectives = arguments.objectives.split(",")
    arguments.cache.parent.mkdir(exist_ok=True)
    with (
        EvaluationLog(arguments.cache, Key.now(space.digest, judge.networks.digest)) as log,
        ProcessPool(arguments.workers, preload=("vdla.explore.jobs",)) as pool,
    ):
        evaluations = Evaluations(judge, pool)
        problem = DesignProblem(space, evaluations, objectives)
        points = [p for p in space.points() if problem.optimistic(p) is not None]
        for level, run in ((MODEL, evaluations.estimates), (EXACT, evaluations.exact)):
            left = [point for point in points if (point, level) not in log.lines]
            results = run([space.design(point) for point in left])
            for place, outcomes in track(results, level, len(left), console=Console(stderr=True)):
                networks = {name: each.to_json() for name, each in outcomes.items()}
                log.append(Line(left[place], level, networks))
        tables = {level: {} for level in (MODEL, EXACT)}
        for (point, level), line in log.lines.items():
            outcomes = {n: Outcome.from_json(v) for n, v in line.networks.items()}
            result = judge.evaluation(space.design(point), level, outcomes)
            tables[level][point] = result.vector(objectives)
    return Replay(problem, tables[EXACT], tables[MODEL])


def curve(replay: Replay, name: str, seed: int) -> list[float]:
    """The share of the hypervolume after each simulation of a searcher."""
    searcher, vectors, shares = SEARCHERS[name](replay, seed), [], []
    while (not shares or shares[-1] < ENOUGH) and (points := searcher.propose(BATCH)):
        searcher.update({point: replay.exact[point] for point in points})
        for point in points:
            vectors.append(replay.exact[point])
            shares.append(replay.volume(vectors) / replay.whole)
    return shares


def needed(shares: Sequence[float], all_designs: int) -> int:
    """Simulations until the share is reached; all where it never is."""
    reached = (count for count, share in enumerate(shares, 1) if share >= SHARE)
    return next(reached, all_designs)


def plot(curves: Mapping[str, Sequence[Sequence[float]]], count: int, path: Path) -> None:
    """Medians and quartiles of the share, by simulations."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, runs in curves.items():
        longest = max(map(len, runs))
        filled = np.array([[*run, *[run[-1]] * (longest - len(run))] for run in runs])
        low, middle, high = np.percentile(filled, [25, 50, 75], axis=0)
        x = 100 * np.arange(1, longest + 1) / count
        (line,) = axes.plot(x, 100 * middle, label=name)
        axes.fill_between(x, 100 * low, 100 * high, color=line.get_color(), alpha=0.2, linewidth=0)
    axes.axhline(100 * SHARE, color="gray", linewidth=0.8, linestyle=":")
    axes.axvline(15, color="gray", linewidth=0.8, linestyle=":")
    axes.set_xlabel("designs simulated, % of all")
    axes.set_ylabel("hypervolume, % of that of all designs")
    axes.set_xlim(0, 100)
    axes.set_ylim(70, 101)
    axes.legend(title=f"median of {SEEDS} seeds, quartiles")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--space", default="small")
    parser.add_argument("--models", default="digits")
    parser.add_argument("--objectives", default="cycles,luts")
    parser.add_argument("--cache", type=Path, default=Path("build/explore-small.log"))
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    replay = enumerate_space(arguments)
    legal = [v for v in replay.exact.values() if all(map(isfinite, v))]
    count, best = len(legal), len(front(np.array(legal)))
    curves, rows = {}, []
    for name in SEARCHERS:
        replay.asked = 0
        curves[name] = [curve(replay, name, seed) for seed in range(SEEDS)]
        low, middle, high = np.percentile([needed(c, count) for c in curves[name]], [25, 50, 75])
        rows.append(
            {
                "searcher": name,
                "needed": middle,
                "quartiles": [low, high],
                "share": middle / count,
                "estimates": replay.asked / SEEDS,
            }
        )
    chosen = bound_front(replay)
    rescored = replay.volume([replay.exact[point] for point in chosen])
    if arguments.plot:
        plot(curves, count, arguments.plot)
    result = {
        "space": arguments.space,
        "objectives": arguments.objectives.split(","),
        "designs": len(replay.exact),
        "legal": count,
        "front": best,
        "bound_front": len(chosen),
        "bound_rescored": rescored / replay.whole,
        "fidelity": fidelity(replay, 0),
        "searchers": rows,
    }
    print(json.dumps(result)) if arguments.json else show(result)


def fidelity(replay: Replay, column: int) -> dict:
    """Exact values of an objective over those of the bound and of the model: the least, the median
    and the greatest; and how many designs have no exact value, of which the model knew."""
    legal = [p for p, v in replay.exact.items() if isfinite(v[column])]
    refused = [p for p in replay.exact if p not in legal]
    bound = [replay.exact[p][column] / replay.optimistic(p)[column] for p in legal]
    model = [replay.exact[p][column] / replay.model[p][column] for p in legal]
    return {
        "bound": np.percentile(bound, [0, 50, 100]).tolist(),
        "model": np.percentile(model, [0, 50, 100]).tolist(),
        "within_5_percent": float(np.mean(np.abs(np.array(model) - 1) <= 0.05)),
        "refused": len(refused),
        "foreseen": sum(not isfinite(replay.model[p][column]) for p in refused),
    }


def bound_front(replay: Replay) -> set[Point]:
    """The designs that none dominates by the bounds."""
    points = list(replay.exact)
    vectors = np.array([replay.optimistic(point) for point in points])
    return {points[row] for row in front(vectors)}


def show(result: Mapping) -> None:
    """Prints the result as a table."""
    title = (
        f"space {result['space']}: {result['legal']} legal designs, {result['front']} in the front "
        f"of {', '.join(result['objectives'])}; simulations for {100 * SHARE:.0f} % of its volume"
    )
    table = Table("searcher", "median", "quartiles", "of all", "estimates", title=title)
    for row in result["searchers"]:
        low, high = row["quartiles"]
        share = f"{100 * row['share']:.1f} %"
        estimates = f"{row['estimates']:.0f}"
        table.add_row(row["searcher"], f"{row['needed']:.0f}", f"{low:.0f} – {high:.0f}", share,
                      estimates)  # fmt: skip
    console = Console(width=110)
    console.print(table)
    console.print(
        f"the {result['bound_front']} designs in the front of the bounds, simulated: "
        f"{100 * result['bound_rescored']:.1f} % of the hypervolume"
    )
    levels, name = result["fidelity"], result["objectives"][0]
    for level in ("bound", "model"):
        low, middle, high = levels[level]
        console.print(
            f"exact {name} over the {level}'s: {low:.2f} to {high:.2f}, median {middle:.2f}"
        )
    console.print(
        f"of the model's, {100 * levels['within_5_percent']:.0f} % are within 5 %; of "
        f"{levels['refused']} designs without a tile it knew {levels['foreseen']}"
    )


if __name__ == "__main__":
    main()
