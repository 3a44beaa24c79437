"""The search on a processor: records, resuming, crashes and hangs, and who gets the trials."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from vdla.compiler.schedule.trace import Step
from vdla.compiler.targets.processor.description.processor import NATIVE
from vdla.compiler.tune.cpu import tuner as module
from vdla.compiler.tune.cpu.measure import Timing, measure
from vdla.compiler.tune.cpu.records import (
    FunctionLog,
    FunctionRecord,
    FunctionRecords,
    export,
    holds_functions,
    load,
    processor,
)
from vdla.compiler.tune.cpu.rules import derive
from vdla.compiler.tune.cpu.space import SketchSpace
from vdla.compiler.tune.cpu.tuner import (
    FunctionOptions,
    FunctionTask,
    gain,
    make_tasks,
    model_ratio,
    next_task,
    tune,
)
from vdla.compiler.tune.records import RecordError


def made_up(function, trace, config=None):
    """A time without a machine: one tile is best, and vectors are worth something."""
    lanes = sum(step.primitive == "vectorize" for step in trace)
    factors = [step.args["factor"] for step in trace if step.primitive == "split"]
    seconds = 1 - 0.2 * lanes + sum((np.log2(f) - 1 - 0.7 * n) ** 2 for n, f in enumerate(factors))
    return Timing("ok", seconds=1e-3 * float(seconds), reference=2e-2, spread=0.0)


DEADLY = """
import os, time
from pathlib import Path
from vdla.compiler.tune.cpu.measure import Timing

def deadly(function, trace, config):
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

    yield deadly.deadly
    monkeypatch.delitem(sys.modules, "deadly")


class FakeMeasurer:
    """Stands in for the workers; answers in reverse order."""

    def __init__(self, functions, config, workers, timeout, how):
        self.functions = functions

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, name, traces):
        for position in reversed(range(len(traces))):
            yield position, made_up(self.functions[name], traces[position])


@pytest.fixture
def fake(monkeypatch):
    """No workers."""
    monkeypatch.setattr(module, "Measurer", FakeMeasurer)


def tuned(path, function, **options):
    tasks = make_tasks([function], "sketch")
    with FunctionLog(path) as log:
        tune(tasks, log, FunctionOptions(**options))
    (task,) = tasks
    return task


@pytest.mark.parametrize("searcher", ["random", "genetic"])
def test_every_trial_is_another_schedule_and_recorded(fake, tmp_path, product, searcher):
    task = tuned(tmp_path / "log", product, trials=24, searcher=searcher)
    records = load(tmp_path / "log")
    assert len(records) == task.trials == task.counts("ok") == 24
    assert len({json.dumps(list(r.trace)) for r in records}) == 24
    assert task.ratio == min(r.outcome.cost for r in records)
    assert task.resumed == 0


@pytest.mark.long
def test_a_search_goes_on_from_its_log(fake, tmp_path, product):
    path = tmp_path / "log"
    whole = tuned(tmp_path / "whole", product, trials=16)
    first = tuned(path, product, trials=16)
    again = tuned(path, product, trials=16)
    assert (again.resumed, again.trials, len(load(path))) == (16, 16, 16)
    assert again.ratio == first.ratio == whole.ratio
    assert path.read_bytes() == (tmp_path / "whole").read_bytes()
    more = tuned(path, product, trials=20)
    assert (more.resumed, more.trials) == (16, 20)
    assert len({json.dumps(list(r.trace)) for r in load(path)}) == 20


def test_the_learned_search_beats_chance(fake, tmp_path, product):
    found = {}
    for name in ("xgboost", "random"):
        tiles = [sketch for sketch in derive(product) if sketch.rule == "tile"]
        task = FunctionTask(product, SketchSpace(tiles))
        with FunctionLog(tmp_path / name) as log:
            tune([task], log, FunctionOptions(trials=32, searcher=name))
        found[name] = task.ratio
    assert found["xgboost"] < found["random"]


def test_what_crashes_or_hangs_is_recorded_and_the_search_goes_on(tmp_path, product, deadly):
    tasks = make_tasks([product], "sketch")
    with FunctionLog(tmp_path / "log") as log:
        tune(tasks, log, FunctionOptions(trials=8, searcher="random", timeout=0.3), how=deadly)
    records = load(tmp_path / "log")
    assert [r.status for r in records] == ["crash", "timeout", "illegal", "ok"] * 2
    assert {r.note for r in records if r.status == "crash"} == {"the worker ended with exit code 3"}
    assert tasks[0].counts("crash", "timeout") == 4


def test_a_schedule_that_does_not_apply_never_runs(product):
    outcome = measure(product, [Step("unroll", "acc", {"axis": "acc.nowhere"})])
    assert (outcome.status, outcome.cost) == ("illegal", inf)
    assert "acc.nowhere" in outcome.note


def test_a_candidate_is_timed_beside_the_default(product):
    outcome = measure(product, product.default)
    assert outcome.status == "ok"
    assert outcome.seconds > 0
    assert outcome.spread >= 0
    assert outcome.cost == outcome.seconds / outcome.reference


# Who gets the trials ------------------------------------------------------------------------------


def task_of(function, layers, history, operations):
    stand_in = replace(function, layers=("layer",) * layers)
    stand_in.__dict__["operations"] = operations
    task = FunctionTask(stand_in, make_tasks([function], "sketch")[0].space)
    task.reference, task.history = history[0], list(history)
    task.note(0, Timing("ok", seconds=history[-1], reference=history[0], spread=0.0))
    return task


def test_trials_go_where_the_time_is(product):
    long = task_of(product, 1, [1.0, 0.9], 1000)
    short = task_of(product, 1, [0.01, 0.009], 10)
    assert next_task([short, long]) == 1
    often = task_of(product, 1000, [0.01, 0.009], 10)
    assert next_task([often, long]) == 0
    untried = make_tasks([product], "sketch")[0]
    assert next_task([long, untried]) == 1
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


# Records ------------------------------------------------------------------------------------------


def record_of(product, **changes):
    trace = [Step("vectorize", "out", {"axis": "out.x"})]
    made = FunctionRecord.of(product.digest, processor(NATIVE), trace, made_up(product, trace))
    return replace(made, **changes)


def test_a_line_is_read_back(product):
    record = record_of(product)
    assert FunctionRecord.from_line(record.to_line(), "log:1") == record
    assert record.steps == [Step("vectorize", "out", {"axis": "out.x"})]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"status": "odd"}, "status 'odd'"),
        ({"seconds": None}, "status ok with seconds None"),
        ({"reference": -1.0}, "status ok with reference -1.0"),
        ({"trace": [1]}, "a trace that isn't a list of steps"),
    ],
)
def test_what_is_no_record_is_refused(product, changes, told):
    line = record_of(product, **changes).to_line()
    with pytest.raises(RecordError) as raised:
        FunctionRecord.from_line(line, "log:1")
    assert str(raised.value) == f"log:1: expected a tuning record, found {told}"


def test_a_log_of_the_accelerator_is_refused(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b'{"schema":2,"workload":{},"tile":{}}\n')
    with pytest.raises(RecordError) as raised:
        FunctionLog(path)
    assert str(raised.value) == (
        f"{path}:1: expected a tuning record of a processor, found one of an accelerator"
    )
    assert not holds_functions(path)


def test_the_best_that_is_worth_it_is_taken(tmp_path, product):
    slow, fast, near = (record_of(product, seconds=s) for s in (0.018, 0.015, 0.0199))
    chosen = FunctionRecords(lambda: [slow, fast])
    assert chosen.best[product.digest, processor(NATIVE)] is fast
    assert chosen.trace(product.digest, NATIVE) == fast.steps
    assert FunctionRecords(lambda: [near]).trace(product.digest, NATIVE) is None
    other = replace(fast, processor="another")
    assert FunctionRecords(lambda: [other]).trace(product.digest, NATIVE) is None
    assert export([slow, fast, other], tmp_path / "best") == 2
    assert holds_functions(tmp_path / "best")
