"""The benchmarks of start-up and of the simulator's speed: what they run, not how fast it is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scripts import load_script

simulator_speed = load_script("benchmarks/simulator_speed.py")
start_up = load_script("benchmarks/start_up.py")


def test_seconds_are_a_processes_own():
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    assert 0.5 <= start_up.seconds(["-c", busy], {}) < 5
    assert start_up.seconds(["-c", "import time; time.sleep(0.5)"], {}) < 0.4


def test_a_command_that_fails_has_no_time():
    with pytest.raises(RuntimeError, match=r"-c 1/0: expected it to succeed, found Traceback"):
        start_up.seconds(["-c", "1/0"], {})


def test_a_revisions_tree_is_what_is_imported(tmp_path):
    staged = subprocess.run(["git", "write-tree"], capture_output=True, text=True, check=True)
    tree = simulator_speed.tree_of(staged.stdout.strip(), tmp_path)
    code = "import vdla, vdla.sim, vdla.isa; print(vdla.__file__, vdla.sim.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, env={"PYTHONPATH": str(tree)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.count(str(tree)) == 2


def test_there_is_no_such_commit(tmp_path):
    with pytest.raises(SystemExit, match=r"^--against: expected a commit .*, found nonsense$"):
        simulator_speed.tree_of("nonsense", tmp_path)
