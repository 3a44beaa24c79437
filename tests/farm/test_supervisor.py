"""A worker's parent: its process is started again until the farm is taken down."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from functools import partial

import pytest

from vdla.farm import supervisor
from vdla.farm.supervisor import Down, Refusal, supervise
from vdla.farm.work import FarmError


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.04)


def turns(file, *actions):
    """Each time that it joins, it does the next of some actions; the file counts."""

    def join(joined):
        with open(file, "a") as log:
            log.write(".")
        actions[len(file.read_text()) - 1](joined)

    return join


def work(joined):
    joined("here")


def raise_error(error, joined):
    raise error


def work_and_die(joined):
    joined("here")
    os.kill(os.getpid(), signal.SIGKILL)


def test_it_is_started_again_until_the_farm_is_down(tmp_path):
    lines = []
    gone = partial(raise_error, FarmError("nobody is there"))
    actions = [work, work_and_die, gone, gone, gone, work, partial(raise_error, Down())]
    joined = []
    supervise(turns(tmp_path / "log", *actions), lines.append, joined.append)
    assert joined == ["here"]
    assert lines == [
        "the scheduler is gone; trying again in 0.01 s",
        "its process ended with exit code -9; trying again in 0.01 s",
        "nobody is there; trying again in 0.02 s",
        "nobody is there; trying again in 0.04 s",
        "nobody is there; trying again in 0.04 s",
        "the scheduler is gone; trying again in 0.01 s",
        "the farm was taken down",
    ]


def test_a_farm_that_cannot_be_joined_at_first_is_an_error(tmp_path):
    with pytest.raises(FarmError, match=r"^nobody is there$"):
        supervise(partial(raise_error, FarmError("nobody is there")), print)


def test_a_refusal_is_one_at_any_time(tmp_path):
    refused = partial(raise_error, Refusal("another version"))
    with pytest.raises(FarmError, match=r"^another version$"):
        supervise(turns(tmp_path / "log", work, refused), lambda line: None)


def test_what_a_process_started_ends_with_it(tmp_path):
    def join(joined):
        child = subprocess.Popen(["sleep", "60"])
        (tmp_path / "child").write_text(str(child.pid))
        raise FarmError("over")

    with pytest.raises(FarmError):
        supervise(join, print)
    pid = int((tmp_path / "child").read_text())
    end = time.monotonic() + 5
    while time.monotonic() < end and is_running(pid):
        time.sleep(0.01)
    assert not is_running(pid)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_that_has_not_joined_ends_with_its_parent(tmp_path):
    """It waits for a scheduler, say, when its parent is killed."""

    def join(joined):
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(60)

    parent = multiprocessing.get_context("fork").Process(target=supervise, args=(join, print))
    parent.start()
    pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    parent.kill()
    parent.join()
    until(lambda: not is_running(pid))


def until(holds):
    """What ``holds`` gives once that is true; it fails after ten seconds."""
    end = time.monotonic() + 10
    while not (result := holds()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return result
