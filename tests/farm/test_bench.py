"""What a worker does jobs with: processes, and resources that one job at a time has."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import misbehaviour as jobs
import pytest

from vdla.farm import bench as module
from vdla.farm.bench import Bench, read_resources
from vdla.farm.pickles import Boxed, dumps
from vdla.farm.work import LOST, FarmError, Job, Limits, Packer, leased


def held(seconds):
    """Which board a job has, and from when to when."""
    begin = time.monotonic()
    time.sleep(seconds)
    return leased("board"), begin, time.monotonic()


def batch(function, *each, needs=(), limits=None):
    """A batch as bytes of calls of a function."""
    packer = Packer(dumps)
    return pickle.dumps(
        tuple(
            packer.pack(Job(Boxed(function), args, needs=needs, limits=limits or Limits()))
            for args in each
        )
    )


def values(data):
    return [pickle.loads(answer.value) for answer in pickle.loads(data).answers]


@pytest.fixture
def opened():
    bench = []

    def make(*args):
        bench.append(Bench(*args))
        return bench[0]

    yield make
    bench[0].close()


def test_a_batch_is_done_in_one_process(opened):
    bench = opened(1)
    assert values(bench.do("a", batch(jobs.length, ("abc",), ("",)))) == [3, 0]
    processes = values(bench.do("b", batch(jobs.process, (), ())))
    assert len(set(processes)) == 1
    assert values(bench.do("c", batch(jobs.process, ()))) == processes[:1]


def test_a_job_that_takes_too_long_costs_no_other(opened):
    limited = batch(jobs.sleep, (30,), (0.0,), limits=Limits(seconds=0.2))
    first, second = pickle.loads(opened(1).do("a", limited)).answers
    assert (first.status, first.note) == ("timeout", "not done after 0.2 s")
    assert pickle.loads(second.value) == 0.0


def test_a_batch_leaves_what_it_has_no_time_for(opened, monkeypatch):
    monkeypatch.setattr(module, "MOST_SECONDS", 0.2)
    data = opened(1).do("a", batch(jobs.sleep, *[(0.15,)] * 5))
    assert len(pickle.loads(data).answers) in (1, 2)


def test_one_board_is_held_by_one_job_at_a_time(opened):
    bench = opened(2, [("board", "a"), ("board", "b"), ("board", "c")])
    with ThreadPoolExecutor(6) as threads:
        data = batch(held, (0.1,), needs=("board",))
        results = list(threads.map(bench.do, "uvwxyz", [data] * 6))
    spans = sorted(values(each)[0] for each in results)
    assert {board for board, _, _ in spans} == {"a", "b", "c"}
    for (board, _, end), (next_board, begin, _) in pairwise(spans):
        assert board != next_board or end <= begin


def test_a_lost_board_is_given_up_and_said(opened):
    lost = []
    resources = [("board", "a"), ("board", "b")]
    bench = opened(1, resources, lambda name, left: lost.append((name, left)))
    data = batch(jobs.fragile, ("board", ("a",)), ("board", ("a",)), needs=("board",))
    states = []
    for name in "xyz":
        answers = pickle.loads(bench.do(name, data)).answers
        states.append([pickle.loads(a.value) if a.ok else a.status for a in answers])
    assert sorted(states) == [["b", "b"], ["b", "b"], [LOST, LOST]]
    assert lost == [("board", 1)]


def test_an_ability_is_shared_and_can_be_lost(opened):
    lost = []
    bench = opened(2, [("rtl", "")], lambda name, left: lost.append((name, left)))
    with ThreadPoolExecutor(2) as threads:
        warm = batch(jobs.length, ("abc",), needs=("rtl",))
        list(threads.map(bench.do, "ab", [warm] * 2))  # processes are started
        data = batch(jobs.span, (1.0,), needs=("rtl",))
        ((one,), (two,)) = map(values, threads.map(bench.do, "cd", [data] * 2))
        assert max(one[0], two[0]) < min(one[1], two[1])
    data = batch(jobs.fragile, ("rtl", ("",)), needs=("rtl",))
    states = [pickle.loads(bench.do(name, data)).answers[0].status for name in "xy"]
    assert (states, lost) == ([LOST, LOST], [("rtl", 0)])
    assert values(bench.do("z", batch(jobs.length, ("abc",)))) == [3]


def test_a_loss_of_nothing_is_a_crash(opened):
    data = batch(jobs.lose_nothing, ())
    (answer,) = pickle.loads(opened(1).do("a", data)).answers
    assert (answer.status, answer.note) == ("crash", "nothing doesn't answer")


def test_nobody_waits_for_a_board_that_is_lost(opened):
    bench = opened(1, [("board", "a")])
    data = batch(jobs.fragile, ("board", ("a",)), needs=("board",))
    notes = [pickle.loads(bench.do(name, data)).answers[0].note for name in "xy"]
    assert notes[0].endswith("(a doesn't answer)")
    assert notes[1] == "expected board, found it was lost"


def test_a_batch_that_is_stopped_ends_soon_and_harms_no_other(opened):
    bench = opened(1)
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(bench.do, "a", batch(jobs.sleep, (30,), (30,)))
        while "a" not in bench._at_work:
            time.sleep(0.01)
        time.sleep(0.2)
        bench.stop(["a", "unknown"])
        assert len(pickle.loads(future.result(10)).answers) == 1
    assert values(bench.do("b", batch(jobs.length, ("abc",)))) == [3]


def test_resources_as_they_are_typed():
    assert read_resources(["rtl", "board:ulx3s=/dev/ttyUSB0", "a=b=c"]) == [
        ("rtl", ""),
        ("board:ulx3s", "/dev/ttyUSB0"),
        ("a", "b=c"),
    ]


@pytest.mark.parametrize("text", ["", "=x", "a b", "a="])
def test_no_resource(text):
    with pytest.raises(FarmError) as caught:
        read_resources([text])
    assert str(caught.value) == f"--resource: expected NAME or NAME=VALUE, found {text!r}"
