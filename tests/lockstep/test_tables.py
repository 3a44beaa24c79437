"""Simulator and RTL agree about tables of functions; and where they don't, it is noticed."""

from __future__ import annotations

import pytest
from planting import plant

from vdla.analysis import lockstep
from vdla.analysis.coverage import Coverage
from vdla.analysis.machines import Machines
from vdla.hw.compute import decide
from vdla.hw.load import position
from vdla.hw.options import tables
from vdla.isa.config import load_config

TABLES = load_config("tiny", ["table_bytes=1024"])
SHAPES = {
    "one table": ("table_bytes=512",),
    # as many as a TABLE can name, in entries of eight results
    "256 tables": (
        "table_bytes=131072", "port_bytes=16", "block_in=16", "block_out=16", "wgt_bytes=8192",
        "acc_bytes=4096", "memory.bytes_per_cycle=16",
    ),
    # fewer entries of ACC than of a table, and numbers of tables that are no power of two
    "three tables": (
        "table_bytes=1536", "block_in=12", "block_out=12", "inp_bytes=3072", "wgt_bytes=4608",
        "acc_bytes=144",
    ),
}  # fmt: skip


def assert_equal(config, programs, coverage=None):
    *_, tally = lockstep.lockstep(Machines(config), programs, 0, coverage=coverage)
    assert tally.programs == programs
    assert not tally.failed, (tally.differences, tally.unexpected)


@pytest.mark.long
def test_two_tables():
    assert_equal(TABLES, 100)


@pytest.mark.long
def test_every_goal_is_reached():
    """Those of TABLE and TAB among them."""
    coverage = Coverage(TABLES)
    assert_equal(TABLES, 300, coverage)
    assert coverage.missing == []


@pytest.mark.long
@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_other_shapes(settings):
    assert_equal(load_config("tiny", settings), 300)


@pytest.mark.long
@pytest.mark.parametrize("config", [TABLES, load_config("paper-plus")], ids=lambda c: c.name)
def test_five_thousand_programs(config):
    assert_equal(config, 5000)


FAULTS = {
    "two lanes look up each other's index": (
        tables, "TablePads", "elaborate", "self.read.index[lane]", "self.read.index[lane ^ 1]",
    ),
    "LOAD writes TAB while it is read": (
        tables, "TableMemory", "connect", "tab_taken.eq(alu.tab.enable)", "tab_taken.eq(0)",
    ),
    "a TABLE that starts from y keeps LOAD from TAB": (
        tables, "TableMicroOps", "feed", "before.writes & ~before.first &", "before.writes &",
    ),
    "an entry of padding is written at once": (
        position, "Position", "__init__", "self.is_data | takes_results(config, tile.memory)",
        "self.is_data",
    ),
    "the last table lies beyond TAB": (
        tables, "TableMicroOps", "beyond", "number >= tables(self.config)",
        "number >= tables(self.config) - 1",
    ),
    "a TABLE that starts from y reads its table": (
        tables, "TableMicroOps", "beyond", "looks_up & ~first &", "looks_up &",
    ),
    "TABLE takes the immediate": (
        decide, "Decide", "_decide", "always = self._or_lacks_x(", "always = (",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name, monkeypatch, tmp_path):
    """Each within 300 programs."""
    plant(FAULTS[name], monkeypatch, tmp_path)
    tallies = lockstep.lockstep(Machines(TABLES), 300, 0, keep=0)
    found = next((t.programs for t in tallies if t.mismatches), None)
    assert found is not None
    print(f"{name}: found by program {found}")
