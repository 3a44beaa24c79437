"""The figures of the page of results are what its commands print."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import load_script

import vdla as package

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results.md").read_text()

figures = load_script("tools/results.py")
BLOCKS = {block[2]: block[0] for block in figures.BLOCK.finditer(PAGE)}


def test_every_block_has_a_command():
    commands = [name.split()[1] for name in BLOCKS]
    assert commands == ["compare", "compare", "run", "offload"]


@pytest.mark.long
def test_the_comparison_is_current(convolutions):
    table = figures.comparison_table(convolutions)
    assert f"-->\n{table}<!--" in BLOCKS["vdla compare resnet18-convs -c paper"]


@pytest.mark.long
def test_the_same_schedule_is_current():
    table = figures.same_schedule_table()
    assert f"-->\n{table}<!--" in BLOCKS["vdla compare resnet18-convs -c paper --same-schedule"]


@pytest.mark.long
def test_the_network_is_current(resnet18):
    line = figures.network_line(resnet18)
    assert f"-->\n{line}<!--" in BLOCKS["vdla run resnet18 --device sim -c paper"]


@pytest.mark.long
def test_the_offloaded_network_is_current():
    table = figures.offload_table(package.offload("resnet18", board="pynq-z2"))
    assert f"-->\n{table}<!--" in BLOCKS["vdla offload resnet18 --board pynq-z2"]
