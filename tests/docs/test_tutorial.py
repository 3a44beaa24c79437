"""The tutorial of docs/microarchitecture.md applies to the sources, and does what it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("isa", "sim", "hw", "compiler", "runtime")


@pytest.fixture
def patched(tmp_path):
    """A copy of the rooms with every diff of the tutorial applied; a PYTHONPATH that finds it."""
    text = (ROOT / "docs" / "microarchitecture.md").read_text()
    diffs = re.findall(r"```diff\n(.*?)```", text, re.DOTALL)
    assert len(diffs) == 3
    package = tmp_path / "path" / "vdla"
    package.mkdir(parents=True)
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room)
        (package / room).symlink_to(tmp_path / room)
    for part in [*(ROOT / "vdla").glob("*.py"), ROOT / "vdla" / "commands"]:
        (package / part.name).symlink_to(part)
    for diff in diffs:
        done = subprocess.run(
            ["git", "apply", "-"], cwd=tmp_path, input=diff, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_diffs_apply(patched):
    changed = [
        str(path.relative_to(patched))
        for room in ROOMS
        for path in sorted((patched / room).rglob("*.py"))
        if path.read_bytes() != (ROOT / path.relative_to(patched)).read_bytes()
    ]
    assert changed == ["isa/instructions.py", "sim/semantics.py", "hw/alu.py"]


@pytest.mark.long
def test_the_operation_passes_lockstep(patched):
    paths = {"PYTHONPATH": str(patched / "path"), "VDLA_CACHE": str(patched / "cache")}
    command = [sys.executable, "-m", "vdla.cli", "lockstep", "-c", "tiny", "--programs", "100"]
    done = subprocess.run(command, env={**os.environ, **paths}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "equal in every cycle and byte" in done.stdout
