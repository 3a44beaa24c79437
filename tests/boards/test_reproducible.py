"""The same inputs give the same bytes: whichever folder, process and order of a set."""

import json
import os
import re
import subprocess
import sys

import pytest

MAKE = """
import sys
from pathlib import Path
from vdla.boards import find_board
from vdla.boards.flows import trellis, xray
from vdla.boards.flows.files import write
from vdla.isa.config import load_config
config = load_config("tiny")
zynq, lattice = find_board("pynq-z2"), find_board("ulx3s")
write(Path("xray"), xray.project(zynq, config))
write(Path("trellis"), trellis.design(lattice, config)[0])
"""
COMMAND = "from vdla.commands.cli import main; main()"


def run(seed, folder, *command):
    """A command in a process of its own, that orders sets by ``seed``; its stdout."""
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.long
def test_projects_are_the_same_bytes_and_hold_no_date_and_no_path(tmp_path):
    places = tmp_path / "one", tmp_path / "another" / "place"
    for seed, place in enumerate(places, 1):
        run(seed, place, "-c", MAKE)
    first, second = map(contents, places)
    assert len(first) > 10
    assert sorted(first) == sorted(second)
    assert [name for name in first if first[name] != second[name]] == []
    for name, content in first.items():
        for place in (tmp_path, sys.prefix, os.getcwd()):
            assert str(place).encode() not in content, (name, place)
        assert not re.search(rb"\b20[2-9]\d-\d\d-\d\d\b|\d\d:\d\d:\d\d", content), name


@pytest.mark.long
def test_the_open_flow_makes_the_same_bitstream_twice(tmp_path):
    synth = ("synth", "--board", "ulx3s", "-c", "tiny", "--json", "--out")
    found = [
        json.loads(run(seed, tmp_path / name, "-c", COMMAND, *synth, name))["sha256"]
        for seed, name in enumerate(("one", "another"), 1)
    ]
    assert found[0] == found[1]
