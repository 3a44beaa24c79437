"""Workers: a crash or a hang costs one candidate and nothing else."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from vdla.compiler.search import measurer as module
from vdla.compiler.search.measurer import Measurer, Meter
from vdla.compiler.search.outcomes import Outcome

MISBEHAVE = """
import os, signal, time
from dataclasses import dataclass
from vdla.compiler.search.measurer import Meter
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
"""


@pytest.fixture
def misbehaving(tmp_path, monkeypatch):
    """Meters that go wrong as they are told to; workers find them by their module."""
    (tmp_path / "misbehaving.py").write_text(MISBEHAVE)
    monkeypatch.syspath_prepend(tmp_path)
    import misbehaving

    yield misbehaving
    monkeypatch.delitem(__import__("sys").modules, "misbehaving")


def test_every_candidate_gets_its_own_outcome(misbehaving):
    length = misbehaving.Length
    candidates = ["a", "crash", "bb", "exit", "ccc", "raise", "dddd"]
    with Measurer([misbehaving.Misbehave()], 2, 20.0) as measurer:
        outcomes = dict(measurer.run(0, candidates))
        again = dict(measurer.run(0, ["after"]))
        processes = [worker.process for worker in measurer.workers]
        assert all(process.is_alive() for process in processes)
        pids = [process.pid for process in processes]
    assert again == {0: length("ok", cost=5)}
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    found = [outcomes[i] for i in range(len(candidates))]
    assert [o.cost for o in found if o.status == "ok"] == [1, 2, 3, 4]
    assert found[1] == length("crash", "the worker ended with exit code -11")
    assert found[3] == length("crash", "the worker ended with exit code 3")
    assert found[5] == length("crash", "KeyError: 'a fault of ours'")


def test_a_worker_that_hangs_is_replaced(misbehaving):
    with Measurer([misbehaving.Misbehave()], 1, 30.0) as measurer:
        list(measurer.run(0, ["warm"]))
        measurer.timeout = 0.5
        found = dict(measurer.run(0, ["hang"]))
        measurer.timeout = 30.0
        found |= {1 + i: o for i, o in measurer.run(0, ["a"])}
    length = misbehaving.Length
    assert found == {0: length("timeout", "not done after 0.5 s"), 1: length("ok", cost=1)}


def test_a_worker_that_starts_slowly_is_waited_for(misbehaving):
    with Measurer([misbehaving.Slow()], 1, 0.5) as measurer:
        assert list(measurer.run(0, ["a"])) == [(0, misbehaving.Length("ok", cost=1))]


def test_what_must_run_alone_has_one_worker(misbehaving):
    with Measurer([misbehaving.Misbehave(), misbehaving.Alone()], 3) as measurer:
        assert len(measurer.workers) == 1
        assert [o.cost for _, o in measurer.run(1, ["a", "bb"])] == [1, 2]


def test_a_worker_killed_while_idle_is_replaced(misbehaving):
    with Measurer([misbehaving.Misbehave()], 1, 30.0) as measurer:
        list(measurer.run(0, ["warm"]))
        measurer.workers[0].process.kill()
        measurer.workers[0].process.join()
        found = [o.status for _, o in measurer.run(0, ["a", "bb"])]
    assert found == ["crash", "ok"]


class Parent:
    """The other end of a worker's pipe: sends what it has, then is gone."""

    def __init__(self, *sent):
        self.sent, self.heard = list(sent), []

    def recv(self):
        if not self.sent:
            raise EOFError
        return self.sent.pop(0)

    def send(self, said):
        self.heard.append(said)


@dataclass(frozen=True)
class Length(Outcome):
    """As long as a candidate is."""

    cost: float = float("inf")


class Ruler(Meter[str, Length]):
    """Needs its parent to hear when it is warm."""

    def __init__(self, parent):
        self.parent = parent

    def measure(self, candidate):
        return Length("ok", cost=len(candidate))

    def lost(self, status, note):
        return Length(status, note)

    def warm_up(self):
        self.parent.send("warm")


def test_a_worker_is_ready_when_its_meters_are():
    """It then answers one candidate after the other until nobody is there any more."""
    parent = Parent((0, "a"), (1, "bb"))
    before = signal.getsignal(signal.SIGINT)
    try:
        module._serve(parent, [Ruler(parent), Ruler(parent)])
    finally:
        signal.signal(signal.SIGINT, before)
    outcomes = [Length("ok", cost=1), Length("ok", cost=2)]
    assert parent.heard == ["warm", "warm", module.READY, *outcomes]
