"""Measuring in a pool: a crash or a hang costs one candidate and nothing else."""

from __future__ import annotations

import pytest

from vdla.compiler.search.measurer import Measurer, RefusalError, local_pool
from vdla.farm.work import FarmError

MISBEHAVE = """
import os, signal, time
from dataclasses import dataclass
from vdla.compiler.search.measurer import Meter, RefusalError
from vdla.compiler.search.outcomes import Outcome

@dataclass(frozen=True)
class Length(Outcome):
    cost: float = float("inf")

class Misbehave(Meter):
    def measure(self, candidate):
        if candidate == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if candidate == "exit":
            os._exit(3)
        if candidate == "hang":
            time.sleep(600)
        if candidate == "raise":
            raise KeyError("a fault of ours")
        return Length("ok", cost=len(candidate))

    def lost(self, status, note):
        return Length(status, note)

class Slow(Misbehave):
    # One that takes a worker seconds to receive.

    def __setstate__(self, state):
        time.sleep(2)

    def __getstate__(self):
        return {"some": "state"}

class Alone(Misbehave):
    ALONE = True

class Warm(Misbehave):
    # One that measures how often it was warmed up.

    times = 0

    def warm_up(self):
        self.times += 1

    def measure(self, candidate):
        return Length("ok", cost=self.times)

class Refusing(Misbehave):
    def measure(self, candidate):
        if candidate == "another":
            raise RefusalError("expected one, found another")
        return Length("ok", cost=1)

class Greedy(Misbehave):
    MEMORY = 1 << 26

    def measure(self, candidate):
        return Length("ok", cost=len(bytes(int(candidate))))

class OnBoard(Misbehave):
    needs = ("board:ulx3s",)
"""


@pytest.fixture
def misbehaving(tmp_path, monkeypatch):
    """Meters that go wrong as they are told to; workers find them by their module."""
    (tmp_path / "misbehaving.py").write_text(MISBEHAVE)
    monkeypatch.syspath_prepend(tmp_path)
    import misbehaving

    yield misbehaving
    monkeypatch.delitem(__import__("sys").modules, "misbehaving")


def run(meters, candidates, task=0, workers=2, seconds=20.0):
    """Outcomes of a task's candidates, by position."""
    with local_pool(meters, workers) as pool:
        return dict(Measurer(meters, pool, seconds).run(task, candidates))


def test_every_candidate_gets_its_own_outcome(misbehaving):
    length = misbehaving.Length
    outcomes = run([misbehaving.Misbehave()], ["a", "crash", "bb", "exit", "ccc", "raise", "dddd"])
    assert [outcomes[n].cost for n in (0, 2, 4, 6)] == [1, 2, 3, 4]
    assert outcomes[1] == length("crash", "the process ended with exit code -11")
    assert outcomes[3] == length("crash", "the process ended with exit code 3")
    assert outcomes[5] == length("crash", "KeyError: 'a fault of ours'")


def test_a_refusal_ends_the_search_and_is_no_crash(misbehaving):
    with local_pool([misbehaving.Refusing()], 1) as pool:
        outcomes = Measurer([misbehaving.Refusing()], pool).run(0, ["one", "another", "one"])
        assert next(outcomes) == (0, misbehaving.Length("ok", cost=1))
        with pytest.raises(RefusalError, match="expected one, found another"):
            next(outcomes)


def test_a_candidate_that_hangs_is_a_timeout(misbehaving):
    outcomes = run([misbehaving.Misbehave()], ["hang", "a"], workers=1, seconds=0.5)
    length = misbehaving.Length
    assert outcomes == {0: length("timeout", "not done after 0.5 s"), 1: length("ok", cost=1)}


def test_a_candidate_that_takes_too_much_memory_is_a_crash(misbehaving):
    outcomes = run([misbehaving.Greedy()], [str(1 << 28), "9"], workers=1)
    length = misbehaving.Length
    note = "it took more memory than 67,108,864 bytes"
    assert outcomes == {0: length("crash", note), 1: length("ok", cost=9)}


def test_a_meter_that_comes_slowly_is_waited_for(misbehaving):
    outcomes = run([misbehaving.Slow()], ["a"], workers=1, seconds=0.5)
    assert outcomes == {0: misbehaving.Length("ok", cost=1)}


def test_what_must_run_alone_has_one_process(misbehaving):
    meters = [misbehaving.Misbehave(), misbehaving.Alone()]
    with local_pool(meters, 3) as pool:
        assert len(pool._workers) == 1
        assert [o.cost for _, o in Measurer(meters, pool).run(1, ["a", "bb"])] == [1, 2]


def test_meters_are_warm_here_and_there(misbehaving):
    warm = misbehaving.Warm()
    outcomes = run([warm], ["a", "b", "c"], workers=1)
    assert warm.times == 1
    assert [outcome.cost for outcome in outcomes.values()] == [2, 2, 2]


def test_what_a_meter_needs_must_be_there(misbehaving):
    expected = "^job: expected a process with board:ulx3s, found no resources$"
    with pytest.raises(FarmError, match=expected):
        run([misbehaving.OnBoard()], ["a"])
