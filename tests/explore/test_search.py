"""The search: levels, what they prune, the log it goes on from, and what it refuses."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest

from vdla.compiler.models import model_path
from vdla.compiler.search.records import Log
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.explore.errors import ExploreError
from vdla.explore.evaluate import TUNED, Evaluator
from vdla.explore.jobs import Evaluations
from vdla.explore.log import EvaluationLog, Key
from vdla.explore.networks import Networks
from vdla.explore.problem import rule
from vdla.explore.search import DOMINATED, Search, SearchOptions
from vdla.explore.space import parse_space
from vdla.explore.tuned import Tuner
from vdla.farm.processes import ProcessPool
from vdla.farm.work import JobPool
from vdla.isa.config import load_config

SPACE = {
    "name": "mine",
    "base": "tiny",
    "constraints": ["block_out < 2 * block_in"],
    "parameters": {"block_in": [4, 6, 8], "block_out": [4, 8], "acc_bytes": [64, 2048]},
}
KEY = Key.now("space", "networks")
TINY = load_config("tiny")


class Here(JobPool):
    """A pool that does jobs in this process; ``done`` counts them by function."""

    def __init__(self):
        self.jobs, self.count, self.done = {}, 0, []

    def submit(self, job):
        self.jobs[self.count] = job
        self.count += 1
        return self.count - 1

    def answers(self):
        from vdla.farm.work import Answer

        while self.jobs:
            number, job = self.jobs.popitem()
            made = [job.setup.make(*job.setup.args)] if job.setup else []
            self.done.append(job.function.__name__)
            yield number, Answer(job.function(*made, *job.args))

    def cancel(self):
        self.jobs.clear()

    close = cancel


@pytest.fixture(scope="module")
def evaluator():
    return Evaluator(Networks({"digits": model_path("digits")}), {"digits": ("digits",)})


@pytest.fixture
def pool():
    return Here()


def search(evaluator, pool, path, tuner=None, data=SPACE, **options):
    how = SearchOptions(**{"objectives": ("cycles", "multipliers", "buffer_bytes"), **options})
    with EvaluationLog(path, KEY) as log:
        space = parse_space(data, "mine", "mine.toml")
        return Search(space, Evaluations(evaluator, pool), how, log).run(TINY, tuner)


@pytest.fixture(scope="module")
def found(evaluator, tmp_path_factory):
    """A search to the end, its log and how often it evaluated."""
    path, pool = tmp_path_factory.mktemp("search") / "log", Here()
    return search(evaluator, pool, path), path, pool.done


def test_the_front_is_that_of_all_designs(evaluator, found):
    result, _, _ = found
    space = result.space
    exact = [evaluator.exact(config) for _, config in space.designs()]
    vectors = [each.vector(result.objectives) for each in exact if each.legal]
    best = {v for v in vectors if not any(all(map(float.__le__, o, v)) and o != v for o in vectors)}
    assert {each.vector(result.objectives) for each in result.points} == best
    assert len(result.evaluations) < len(exact)


def test_each_level_says_what_it_pruned(found):
    result, _, done = found
    config, bound, model, exact, tuned = result.levels
    assert (config.name, config.seen) == ("config", 12)
    assert config.pruned == {
        "constraint block_out < 2 * block_in": 2,
        "block_in bytes to be a multiple of port_bytes = 4": 4,
    }
    assert (bound.name, bound.seen) == ("bound", 6)
    assert sum(bound.pruned.values()) > 0
    assert model.name == "model"
    assert all("expected buffers that hold one tile" in reason for reason in model.pruned)
    assert (exact.name, exact.seen) == ("exact", len(result.evaluations))
    assert (tuned.name, tuned.seen) == ("tuned", 0)
    assert done.count("_measure") == exact.seen + 1  # the baseline
    assert done.count("_estimate") == model.seen
    assert DOMINATED not in result.rejected


def test_a_search_goes_on_from_its_log(evaluator, found, tmp_path, pool):
    whole, path, _ = found
    lines = path.read_bytes().splitlines(keepends=True)
    log = tmp_path / "log"
    log.write_bytes(b"".join(lines[:1]) + lines[1][:50])
    again = search(evaluator, pool, log)
    assert again.front == whole.front
    assert again.evaluations == whole.evaluations
    assert pool.done.count("_measure") == len(lines)
    assert sorted(log.read_bytes().splitlines(keepends=True)) == sorted(lines)


def test_a_budget_is_the_most_designs_that_are_simulated(evaluator, found, tmp_path, pool):
    result = search(evaluator, pool, tmp_path / "log", budget=1)
    assert len(result.evaluations) == 1
    _, path, _ = found
    log = tmp_path / "whole"
    log.write_bytes(path.read_bytes())
    assert len(search(evaluator, pool, log, budget=1).evaluations) == len(found[0].evaluations)


def test_without_time_none_is_begun(evaluator, tmp_path, pool):
    result = search(evaluator, pool, tmp_path / "log", seconds=0)
    assert (len(result.evaluations), result.front) == (0, [])
    assert result.baseline.cycles["digits"] == 12719


def test_what_it_came_to_is_json(found):
    result, _, _ = found
    value = json.loads(json.dumps(result.to_json()))
    assert value["evaluated"] == len(result.evaluations)
    assert value["baseline"]["cycles"] == 12719
    assert value["baseline"]["config"] == "tiny"
    cycles = [row["cycles"] for row in value["front"]]
    assert cycles == sorted(cycles)
    for row in value["front"]:
        config = result.space.base.override(row["settings"])
        assert row["config"] == config.to_dict()
        assert row["multipliers"] == config.macs_per_cycle
    assert sum(value["rejected"].values()) >= 6


@pytest.mark.long
def test_the_front_is_tuned(evaluator, tmp_path):
    log = tmp_path / "log"
    plain = search(evaluator, Here(), log, budget=1)
    (point,) = plain.front
    results = []
    for pool in Here(), Here():
        with Log(tmp_path / "tiles", TileRecord) as tiles:
            tuner = Tuner(evaluator.networks, tiles, pool, trials=2)
            results.append(search(evaluator, pool, log, tuner, budget=1))
            assert len(tiles.records) == 2 * 5
    result, again = results
    assert result.levels[-1].seen == 1
    assert result.evaluations[point].total < plain.evaluations[point].total
    assert result.evaluations[point].level == TUNED
    assert again.evaluations == result.evaluations
    assert pool.done == ["_measure"]  # of the baseline: what the logs hold is not done again


class Clocked(Here):
    """A pool in which an evaluation takes 30 s, and with tuned schedules half the cycles."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def answers(self):
        for number, answer in super().answers():
            if self.done[-1] == "_measure":
                self.clock.now += 30
                _, records = self.measured.pop()
                if records is not None:
                    halved = {n: replace(o, cycles=o.cycles / 2) for n, o in answer.value.items()}
                    answer = replace(answer, value=halved)
            yield number, answer

    def submit(self, job):
        self.measured = [job.args] if job.function.__name__ == "_measure" else []
        return super().submit(job)


class Tuned:
    """A tuner that takes 100 s for a design."""

    def __init__(self, clock):
        self.clock = clock

    def records(self, config):
        self.clock.now += 100
        return []

    def known(self, config):
        return []


def test_the_time_is_for_searching_and_for_tuning(evaluator, tmp_path, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("vdla.explore.search.time", clock)
    result = search(
        evaluator, Clocked(clock), tmp_path / "plain", batch=1, seconds=100, searcher="random"
    )
    assert len(result.evaluations) == 4
    clock.now = 0.0
    tuner = Tuned(clock)
    result = search(
        evaluator, Clocked(clock), tmp_path / "log", tuner, batch=1, seconds=130, searcher="random"
    )
    assert len(result.evaluations) == 4  # after 120 s, and the baseline takes 30 more
    assert [each.level for each in result.points].count(TUNED) == 0
    clock.now = 0.0
    result = search(
        evaluator, Clocked(clock), tmp_path / "log", tuner, batch=1, seconds=200, searcher="random"
    )
    tuned = [each for each in result.evaluations.values() if each.level == TUNED]
    assert len(tuned) == result.levels[-1].seen == 2  # what is tuned counts when the time is over


@pytest.mark.parametrize("searcher", ["random", "nsga2", "guided"])
def test_no_time_at_all(evaluator, pool, found, tmp_path, searcher):
    options = {"searcher": searcher, "seconds": 0}
    text = "space mine: expected time for a design, found none was looked at; give --time more"
    if searcher != "guided":  # it lists small spaces before it begins
        with pytest.raises(ExploreError, match=text):
            search(evaluator, pool, tmp_path / "log", **options)
    log = shutil.copy(found[1], tmp_path / "whole")
    assert search(evaluator, pool, log, **options).evaluations == found[0].evaluations


@pytest.mark.long
def test_processes_evaluate(evaluator, found, tmp_path):
    with ProcessPool(2, preload=("vdla.explore.jobs",)) as pool:
        result = search(evaluator, pool, tmp_path / "log", budget=2)
    whole = found[0].evaluations
    assert len(result.evaluations) == 2
    assert all(each == whole[point] for point, each in result.evaluations.items() if point in whole)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"objectives": ("speed",)}, "--objectives: expected some of cycles, .*, found speed"),
        ({"searcher": "best"}, "--searcher: expected one of guided, .*, found best"),
    ],
)
def test_bad_options_are_refused(evaluator, pool, tmp_path, options, text):
    with pytest.raises(ExploreError, match=text):
        search(evaluator, pool, tmp_path / "log", **options)


@pytest.mark.parametrize("searcher", ["guided", "nsga2", "random", "bound"])
def test_a_space_without_a_legal_design_is_refused(evaluator, pool, tmp_path, searcher):
    data = {**SPACE, "constraints": ["block_in > 8"]}
    text = "space mine: expected a legal design, found none among .* points; .* constraint block_in"
    with pytest.raises(ExploreError, match=text):
        search(evaluator, pool, tmp_path / "log", data=data, searcher=searcher)


@pytest.mark.parametrize(
    ("reason", "counted"),
    [
        ("part xc7z020: lut 64,246 of 53,200 (11,046 too many)", "part xc7z020: lut over 53,200"),
        ("part xc7z020: bram 142.5 of 140 (2.5 too many)", "part xc7z020: bram over 140"),
        ("acc_bytes to hold 2 entries, found 1", "acc_bytes to hold 2 entries"),
        ("conv1 stays on the host: 3 channels", "conv1 stays on the host: 3 channels"),
    ],
)
def test_reasons_are_counted_without_what_was_there(reason, counted):
    assert rule(reason) == counted
