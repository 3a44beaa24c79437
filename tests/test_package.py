"""The sdist and the wheel: complete, and enough to compile and simulate with."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("support", "farm", "isa", "sim", "hw", "compiler", "runtime", "boards", "explore", "vdla")
IN_SOURCES_ALONE = (".md",)  # documents, and what they are made with
SCRIPT = """
import sys, vdla
assert vdla.__path__[0].startswith(sys.argv[1]), vdla.__path__
module = vdla.compile("digits", "tiny")
assert module.programs
"""
SIMULATE = """
assert vdla.run(module, vdla.api.random_inputs(module)).cycles
"""
INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}  # numba would take most of the time


def tracked() -> list[str]:
    """Files of the rooms, as git knows them."""
    listed = subprocess.run(
        ["git", "ls-files", *ROOMS], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in listed.stdout.split() if (ROOT / name).exists()]


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """A folder with the sdist, and the wheel made of it."""
    folder = tmp_path_factory.mktemp("dist")
    sources = folder / "sources"
    for name in (*tracked(), "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        target = sources / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    done = subprocess.run([*command, str(sources)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_wheel_has_every_file_that_code_needs(dist):
    (wheel,) = dist.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {n if n.startswith("vdla/") else f"vdla/{n}" for n in tracked()}
    assert sorted(n for n in wanted - names if not n.endswith(IN_SOURCES_ALONE)) == []


def test_the_sdist_has_the_licence_and_the_readme(dist):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "setup.py"} <= names


@pytest.mark.parametrize(
    ("script", "environment"),
    [(SCRIPT, INTERPRETED), pytest.param(SCRIPT + SIMULATE, {}, marks=pytest.mark.long)],
    ids=["compiles", "simulates"],
)
def test_the_wheel_is_enough(dist, tmp_path, script, environment):
    (wheel,) = dist.glob("*.whl")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    done = subprocess.run(
        [sys.executable, "-c", script, str(site)],
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(site),
            "PATH": "/usr/bin:/bin",
            "VDLA_CACHE": str(tmp_path / "c"),
            **environment,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
