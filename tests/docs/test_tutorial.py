"""The tutorial of docs/microarchitecture.md: its diffs apply, and make two equal machines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vdla.isa.config import load_config
from vdla.isa.manual import header

ROOT = Path(__file__).parents[2]
ROOMS = ("support", "isa", "sim", "hw", "compiler", "runtime")
DOCUMENT = (ROOT / "docs" / "microarchitecture.md").read_text()
DIFF = "\n".join(re.findall(r"^```diff\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL))
STALE = "docs/microarchitecture.md, section 13: its diffs no longer apply; make them again"
SKIPPED = shutil.ignore_patterns("__pycache__")


@pytest.fixture
def sources(tmp_path):
    """A copy of the sources, in which ``vdla`` can be imported from ``packages``."""
    for name in (*ROOMS, "vdla", "tests", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=SKIPPED)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)  # pytest's options
    package = tmp_path / "packages" / "vdla"
    package.mkdir(parents=True)
    for part in (*(tmp_path / room for room in ROOMS), *(tmp_path / "vdla").iterdir()):
        (package / part.name).symlink_to(part)
    return tmp_path


def apply(folder, *options):
    """``git apply``, which knows nothing of the repository that the copy may lie in."""
    return subprocess.run(
        ["git", "apply", *options],
        cwd=folder,
        input=DIFF.encode(),
        env={**os.environ, "GIT_DIR": os.devnull},
        capture_output=True,
    )


def command(sources, *arguments):
    """Runs a Python module on the copy."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=sources / "packages",
        env={**os.environ, "PYTHONPATH": str(sources / "packages")},
        capture_output=True,
        text=True,
    )


def test_the_diffs_apply(sources):
    done = apply(sources, "--check", "--verbose")
    assert done.returncode == 0, f"{STALE}\n{done.stderr.decode()}"
    assert done.stderr.count(b"Checking patch") == DIFF.count("+++ b/") > 0


@pytest.mark.long
def test_the_operation_works(sources):
    done = apply(sources)
    assert done.returncode == 0, f"{STALE}\n{done.stderr.decode()}"
    manual = command(sources, "vdla.cli", "isa", "doc")
    assert "RQ = 6, LEAKY = 7." in manual.stdout, manual.stderr
    done = command(sources, "vdla.cli", "lockstep", "-c", "tiny", "--programs", "200", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"mismatches": 0' in done.stdout
    changed = sorted(set(re.findall(r"^\+\+\+ b/(tests/.*)", DIFF, re.MULTILINE)))
    tests = [str(sources / path) for path in changed]
    done = command(sources, "pytest", "-m", "not long", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


def test_names_of_the_driver_exist():
    """The C in section 11 uses names that ``vdla isa header`` writes."""
    (code,) = re.findall(r"^```c\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    used = set(re.findall(r"VDLA_\w+", code))
    known = set(re.findall(r"#define (VDLA_\w+)", header(load_config("paper"))))
    assert used <= known
    assert len(used) > 10
