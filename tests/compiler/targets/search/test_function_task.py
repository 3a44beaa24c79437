"""The search for functions' schedules: resuming, crashes and hangs, and who gets the trials."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from vdla.compiler import tree_rnn
from vdla.compiler.schedule.trace import Step
from vdla.compiler.search import tuner as module
from vdla.compiler.search.records import Log, load
from vdla.compiler.search.tuner import TuneOptions, tune
from vdla.compiler.targets.processor.search.rules import derive
from vdla.compiler.targets.processor.search.stopwatch import ProcessorStopwatch
from vdla.compiler.targets.processor.search.tasks import function_tasks
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.function_task import FunctionTask, gain, model_ratio
from vdla.compiler.targets.search.stopwatch import Timing
from vdla.compiler.tree_rnn import TREE


def made_up(trace):
    """A time without a machine: one tile is best, and vectors are worth something."""
    lanes = sum(step.primitive == "vectorize" for step in trace)
    factors = [step.args["factor"] for step in trace if step.primitive == "split"]
    seconds = 1 - 0.2 * lanes + sum((np.log2(f) - 1 - 0.7 * n) ** 2 for n, f in enumerate(factors))
    return Timing("ok", seconds=1e-3 * float(seconds), reference=2e-2, spread=0.0)


DEADLY = """
import os, time
from pathlib import Path
from vdla.compiler.targets.processor.search.stopwatch import ProcessorStopwatch
from vdla.compiler.targets.search.stopwatch import Timing

class Deadly(ProcessorStopwatch):
    def measure(self, candidate):
        with Path(__file__).with_suffix(".calls").open("a") as calls:
            kind = calls.tell() % 4
            calls.write(".")
        if kind == 0:
            os._exit(3)
        if kind == 1:
            time.sleep(1000)
        if kind == 2:
            return Timing("illegal", note="odd")
        return Timing("ok", seconds=1.0, reference=2.0, spread=0.0)
"""


@pytest.fixture
def deadly(tmp_path, monkeypatch):
    """Some candidates end their process, some never end; workers find it by its module."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    monkeypatch.syspath_prepend(tmp_path)
    import deadly

    yield deadly.Deadly
    monkeypatch.delitem(sys.modules, "deadly")


class FakeMeasurer:
    """Stands in for the workers; answers in reverse order."""

    def __init__(self, meters, workers, timeout):
        self.meters = meters

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, task, traces):
        for position in reversed(range(len(traces))):
            yield position, made_up(traces[position])


@pytest.fixture
def fake(monkeypatch):
    """No workers."""
    monkeypatch.setattr(module, "Measurer", FakeMeasurer)


def tuned(path, function, **options):
    tasks = function_tasks([function], "sketch")
    with Log(path, FunctionRecord) as log:
        tune(tasks, log, TuneOptions(**options))
    (task,) = tasks
    return task


@pytest.mark.parametrize("searcher", ["random", "genetic"])
def test_every_trial_is_another_schedule_and_recorded(fake, tmp_path, product, searcher):
    task = tuned(tmp_path / "log", product, trials=24, searcher=searcher)
    records = load(tmp_path / "log", FunctionRecord)
    assert len(records) == task.trials == task.counts["ok"] == 24
    assert len({json.dumps(list(r.trace)) for r in records}) == 24
    assert task.ratio == min(r.outcome.cost for r in records)
    assert task.resumed == 0


@pytest.mark.long
def test_a_search_goes_on_from_its_log(fake, tmp_path, product):
    path = tmp_path / "log"
    whole = tuned(tmp_path / "whole", product, trials=16)
    first = tuned(path, product, trials=16)
    again = tuned(path, product, trials=16)
    assert (again.resumed, again.trials, len(load(path, FunctionRecord))) == (16, 16, 16)
    assert again.ratio == first.ratio == whole.ratio
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()
    more = tuned(path, product, trials=20)
    assert (more.resumed, more.trials) == (16, 20)
    assert len({json.dumps(list(r.trace)) for r in load(path, FunctionRecord)}) == 20


def test_a_search_by_trees_goes_on_from_its_log(fake, monkeypatch, tmp_path, product):
    monkeypatch.setattr(tree_rnn, "STEPS", 20)
    tuned(tmp_path / "whole", product, trials=20, cost_model=TREE)
    whole = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    (tmp_path / "cut").write_bytes(b"".join(whole[:9]))
    tuned(tmp_path / "cut", product, trials=20, cost_model=TREE)
    assert (tmp_path / "cut").read_bytes() == b"".join(whole)


def test_the_learned_search_beats_chance(fake, tmp_path, product):
    found = {}
    for name in ("model", "random"):
        tiles = [sketch for sketch in derive(product) if sketch.rule == "tile"]
        task = FunctionTask.of(ProcessorStopwatch(product), tiles)
        with Log(tmp_path / name, FunctionRecord) as log:
            tune([task], log, TuneOptions(trials=32, searcher=name))
        found[name] = task.ratio
    assert found["model"] < found["random"]


def test_what_crashes_or_hangs_is_recorded_and_the_search_goes_on(tmp_path, product, deadly):
    tasks = function_tasks([product], "sketch")
    with Log(tmp_path / "log", FunctionRecord) as log:
        tasks[0].meter = deadly(product)
        tune(tasks, log, TuneOptions(trials=8, searcher="random", timeout=0.3))
    records = load(tmp_path / "log", FunctionRecord)
    assert [r.status for r in records] == ["crash", "timeout", "illegal", "ok"] * 2
    assert {r.note for r in records if r.status == "crash"} == {
        "the process ended with exit code 3"
    }
    assert tasks[0].counts == {"crash": 2, "timeout": 2, "illegal": 2, "ok": 2}


def test_a_schedule_that_does_not_apply_never_runs(own_product):
    outcome = ProcessorStopwatch(own_product).measure(
        [Step("unroll", "acc", {"axis": "acc.nowhere"})]
    )
    assert (outcome.status, outcome.cost) == ("illegal", inf)
    assert "acc.nowhere" in outcome.note


def test_a_candidate_is_timed_beside_the_default(own_product):
    outcome = ProcessorStopwatch(own_product).measure(own_product.default)
    assert outcome.status == "ok"
    assert outcome.seconds > 0
    assert outcome.spread >= 0
    assert outcome.cost == outcome.seconds / outcome.reference


# Who gets the trials ------------------------------------------------------------------------------


def task_of(function, layers, history, operations):
    stand_in = replace(function, layers=("layer",) * layers)
    stand_in.__dict__["operations"] = operations
    task = FunctionTask.of(ProcessorStopwatch(stand_in), derive(function))
    task.reference, task.history = history[0], list(history)
    task.note(0, Timing("ok", seconds=history[-1], reference=history[0], spread=0.0))
    return task


def next_task(tasks, **options):
    turn = FunctionTask.next_task(tasks, TuneOptions(**options))
    return None if turn is None else turn.number


def test_trials_go_where_the_time_is(product):
    long = task_of(product, 1, [1.0, 0.9], 1000)
    short = task_of(product, 1, [0.01, 0.009], 10)
    assert next_task([short, long]) == 1
    often = task_of(product, 1000, [0.01, 0.009], 10)
    assert next_task([often, long]) == 0
    untried = function_tasks([product], "sketch")[0]
    assert next_task([long, untried]) == 1
    assert next_task([short, long], trials=1) is None  # which both had
    assert next_task([long, untried], trials=1) == 1
    long.used_up = short.used_up = True
    assert next_task([short, long]) is None


def test_trials_go_where_others_like_it_are_faster(product):
    slow, fast = task_of(product, 1, [1.0], 100), task_of(product, 1, [1.0], 1000)
    assert gain(slow, [slow, fast]) > gain(slow, [slow])
    falling, flat = (task_of(product, 1, [first, 1.0, 1.0], 100) for first in (2.0, 1.0))
    assert gain(falling, [falling]) > gain(flat, [flat])


def test_the_model_counts_a_function_as_often_as_it_has_layers(product):
    halved, same = task_of(product, 3, [1.0, 0.5], 1), task_of(product, 1, [1.0, 1.0], 1)
    assert model_ratio([halved, same]) == 2.5 / 4
