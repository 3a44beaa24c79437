"""numba's cache: one process compiles at a time, and nobody waits for what is compiled already."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import numba
import numpy as np
import pytest

from vdla.isa.config import load_config
from vdla.isa.instructions import Finish
from vdla.sim.checker import check
from vdla.sim.compiled import CACHE_DIR, compile_once, jit
from vdla.sim.machine import warm_up
from vdla.sim.timing import machine
from vdla.support.progress import heard_by, report

USE = """
from vdla.isa.config import load_config
from vdla.isa.instructions import Finish
from vdla.sim.checker import check
from vdla.sim.machine import warm_up
warm_up(load_config("tiny"))
assert check(load_config("tiny"), [Finish()]) == []
"""


def test_without_numba_loops_run_as_python():
    """As whoever looks for a fault in them, or measures what tests notice, has them run."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", USE], env=environment, check=True, timeout=120)


@pytest.mark.parametrize(("name", "has_banks"), [("tiny", False), ("ulx3s", True)])
def test_nothing_is_left_to_compile_after_warming_up(monkeypatch, name, has_banks):
    """The first image that is timed would have it otherwise: the loop of a memory with banks is
    another one."""
    asked = []
    monkeypatch.setattr(machine, "_compile", lambda options, banks: asked.append(banks))
    warm_up(load_config(name))
    assert asked[-1] is has_banks


def test_what_is_compiled_waits_for_no_lock():
    """Another process compiles something else meanwhile, for as long as it likes."""
    warm_up(load_config("tiny"))
    check(load_config("tiny"), [Finish()])
    folder = Path(os.environ.get("NUMBA_CACHE_DIR") or CACHE_DIR)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([sys.executable, "-c", USE], check=True, timeout=120)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_one_compiles_at_a_time(folder):
    """The second waits for the first, then finds no mark of its own and compiles."""
    start, go_on, order = Event(), Event(), []

    def first():
        start.set()
        go_on.wait(10)
        order.append("first")

    threads = [Thread(target=compile_once, args=("one", first))]
    threads[0].start()
    assert start.wait(10)
    threads.append(Thread(target=compile_once, args=("two", lambda: order.append("second"))))
    threads[1].start()
    threads[1].join(0.2)
    assert order == []
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert order == ["first", "second"]
    assert len(list(folder.glob("*.compiled"))) == 2


def test_a_failed_compilation_leaves_no_mark(folder):
    with pytest.raises(ZeroDivisionError):
        compile_once("one", lambda: 1 // 0)
    assert not list(folder.glob("*.compiled"))


def test_a_listener_is_told_how_far_it_is(folder):
    """Each loop counts once, however often numba compiles it; numba's own don't count."""

    @jit
    def twice(x):
        return x + x

    def run():
        twice(1)
        twice(np.ones(2))

    told = []
    with heard_by(lambda *now: told.append(now)):
        compile_once("simulator", run)
    loops = told[-1][2]
    assert loops > 50
    assert told[0] == ("compiling the simulator, once for this version", 0, 1)
    assert set(told[1:]) == {("compiling the simulator, once for this version", 1, loops)}
    assert not report("nobody listens now", 0, 1)


@pytest.mark.parametrize("terminal", [False, True])
def test_stderr_says_what_takes_so_long(terminal, folder, monkeypatch, capsys):
    """A terminal, and a log as well."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    compile_once("simulator", lambda: None)
    compile_once("simulator", lambda: None)
    assert capsys.readouterr().err == "vdla: compiling the simulator, once for this version\n"


def test_stderr_says_what_a_process_waits_for(folder, capsys):
    start, go_on = Event(), Event()
    first = Thread(target=compile_once, args=("one", lambda: start.set() or go_on.wait(10)))
    second = Thread(target=compile_once, args=("two", lambda: None))
    first.start()
    assert start.wait(10)
    second.start()
    second.join(0.2)
    assert capsys.readouterr().err == (
        "vdla: compiling the one, once for this version\n"
        "vdla: waiting for another process that compiles; then the two is compiled\n"
    )
    go_on.set()
    for thread in (first, second):
        thread.join(10)
    assert capsys.readouterr().err == "vdla: compiling the two, once for this version\n"


# Damaged entries -----------------------------------------------------------------------------

LOOP = """
from vdla.sim.compiled import jit

@jit
def twice(x):
    return x + x
"""
CALL = """
import sys
sys.path.insert(0, sys.argv[1])
from loop import twice
from numba.core import event
from vdla.sim.compiled import compile_once

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        pass

    def on_end(self, event):
        compiled.append(event)

with event.install_listener("numba:compile", Listener()):
    compile_once("simulator", lambda: twice(3))
print(twice(21), len(compiled))
"""


def random_bytes(path):
    path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size))


DAMAGES = {
    "data of no length": ("*.nbc", lambda path: path.write_bytes(b"")),
    "random data": ("*.nbc", random_bytes),
    "a random index": ("*.nbi", random_bytes),
    "random data and a random index": ("*.nb?", random_bytes),
    "data that is gone": ("*.nbc", lambda path: path.unlink()),
    "a seal of no length": ("*.sha256", lambda path: path.write_bytes(b"")),
}
OFTEN = ("data of no length", "random data and a random index", "a seal of no length")


def call(folder):
    """Twice 21 by the loop in a folder, and how many loops were compiled for it."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-c", CALL, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder with a loop, and with a whole cache of it; each test leaves it whole."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "loop.py").write_text(LOOP)
    assert call(folder) == "42 1\n"
    assert call(folder) == "42 0\n"
    return folder


@pytest.mark.parametrize(
    "name",
    [each if each in OFTEN else pytest.param(each, marks=pytest.mark.long) for each in DAMAGES],
)
def test_damaged_entries_are_compiled_again(whole, name):
    pattern, damage = DAMAGES[name]
    (path, *others) = (whole / "cache").rglob(pattern)
    for each in (path, *others):
        damage(each)
    assert call(whole) == "42 1\n"
    assert call(whole) == "42 0\n"
