"""Simulator and RTL agree about LOADs of nibbles; and where they don't, it is noticed."""

from __future__ import annotations

import pytest
from planting import plant

from vdla.analysis import lockstep
from vdla.analysis.coverage import Coverage
from vdla.analysis.machines import Machines
from vdla.hw.load import memory_ports
from vdla.hw.options import weights4
from vdla.isa.config import load_config

PLAIN = load_config("tiny", ["weights4=1"])
SHAPES = {
    "two columns in a tile": ("block_in=4", "block_out=4", "port_bytes=4", "wgt_bytes=64"),
    "one beat in a tile of nibbles": ("block_in=8", "block_out=8", "port_bytes=8",
                                      "memory.bytes_per_cycle=8", "wgt_bytes=4096"),
    "twelve lanes": ("block_in=12", "block_out=12", "inp_bytes=3072", "wgt_bytes=4608",
                     "acc_bytes=1536"),
    "more inputs than outputs, beside tables": ("block_in=64", "wgt_bytes=8192",
                                                "table_bytes=1024", "forwarding=1"),
    "fewer inputs than outputs, a fourth engine": ("block_out=16", "wgt_bytes=8192",
                                                   "acc_bytes=8192", "vector_engine=1"),
}  # fmt: skip


def assert_equal(config, programs, coverage=None):
    *_, tally = lockstep.lockstep(Machines(config), programs, 0, coverage=coverage)
    assert not tally.failed, (tally.differences, tally.unexpected)


def test_forty_programs():
    assert_equal(PLAIN, 40)


@pytest.mark.long
def test_every_goal_is_reached():
    """LOADs of WGT4 to its ends and beyond them among them."""
    coverage = Coverage(PLAIN)
    assert_equal(PLAIN, 600, coverage)
    assert coverage.missing == []
    assert "endings: ADDRESS: a LOAD beyond WGT4" in coverage.goals


@pytest.mark.long
@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_other_shapes(settings):
    assert_equal(load_config("tiny", [*settings, "weights4=1"]), 300)


FAULTS = {
    "nibbles change places": (
        weights4, "Nibbles", "columns", "word_select(n, ", "word_select(n ^ 1, ",
    ),
    "a nibble has no sign": (
        weights4, "Nibbles", "columns", "nibble[-1].replicate", "(nibble[-1] & 0).replicate",
    ),
    "a beat of nibbles fills one column": (
        memory_ports, "MemoryWrites", "_enable", "n // count", "n",
    ),
    "bytes are widened too": (
        memory_ports, "MemoryWrites", "_write_beats", "written.tile.memory == form.memory", "1",
    ),
    "padding isn't written": (
        memory_ports, "MemoryWrites", "_enable", "1 << columns)", "1 << columns // count)",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name, monkeypatch, tmp_path):
    """Each within 100 programs."""
    plant(FAULTS[name], monkeypatch, tmp_path)
    tallies = lockstep.lockstep(Machines(PLAIN), 100, 0, keep=0)
    assert next((t.programs for t in tallies if t.mismatches), None) is not None
