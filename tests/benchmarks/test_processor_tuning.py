"""The curve of a network's time against trials, and the picture of it."""

from __future__ import annotations

from math import inf

import pytest
from scripts import load_script

from vdla.analysis.plots import Line, save_lines
from vdla.compiler.search.records import Log
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.stopwatch import Timing
from vdla.options import Tune

processor_tuning = load_script("benchmarks/processor_tuning.py")


def record(function, seconds):
    status = "ok" if seconds < inf else "illegal"
    timing = Timing(status, "", seconds if status == "ok" else None, 4.0)
    return FunctionRecord.of((function, "cpu"), [], timing)


def test_the_curve_is_the_time_of_all_functions_as_often_as_they_occur():
    times = {"a": (2, 3.0), "b": (1, 4.0)}  # 6 and 4 seconds by default
    records = [record(*each) for each in (("a", 2.0), ("b", 5.0), ("b", inf), ("a", 3.0), ("b", 1))]
    records.insert(1, record("c", 1.0))  # a function of another network
    wanted = [1.0, 0.7, 0.7, 0.7, 0.7, 0.4]
    assert processor_tuning.curve(records, times, 9) == pytest.approx(wanted)
    assert processor_tuning.curve(records, times, 2) == pytest.approx(wanted[:3])


def test_a_search_goes_on_from_its_log(tmp_path):
    log = tmp_path / "digits-random.jsonl"
    options = Tune(log, target="cpu", layer="conv2")
    first = processor_tuning.searched("digits", "random", 2, options)
    again = processor_tuning.searched("digits", "random", 3, options)
    assert [run.tasks[0].resumed for run in (first, again)] == [0, 2]
    with Log(log, FunctionRecord) as kept:
        assert list(again.records) == kept.records
    assert len(kept.records) == 3
    times = processor_tuning.default_times([first, again])
    assert list(times) == [first.tasks[0].function.digest]


def test_the_picture_is_the_same_each_time(tmp_path):
    lines = [Line("one", [1.0, 0.9, 0.9]), Line("two", [1.0, 1.0])]
    pictures = [
        save_lines(tmp_path / name / "x.svg", lines, "title", ("trials", "time")).read_bytes()
        for name in ("a", "b")
        if not (tmp_path / name).mkdir()
    ]
    assert pictures[0] == pictures[1]
    assert pictures[0].startswith(b"<?xml")
