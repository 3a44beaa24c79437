"""Simulator and RTL agree about forwarding and the window; and where they don't, it is noticed."""

from __future__ import annotations

import pytest
from planting import plant

from vdla.analysis import lockstep
from vdla.analysis.coverage import Coverage
from vdla.analysis.machines import Machines
from vdla.hw.compute import decide
from vdla.hw.core import memories
from vdla.hw.load import memory_ports, write
from vdla.hw.options import window
from vdla.hw.store import reader, sender
from vdla.isa.config import load_config

# An entry of INP has two beats, of which a vector of ACC8 fills one; the window fills most lanes.
SMALL = load_config("tiny", ["block_in=8", "wgt_bytes=4096", "forwarding=1", "window_taps=3",
                             "table_bytes=512", "writes_in_flight=1"])  # fmt: skip
# COMPUTE executes GEMM and ALU: the pitch of a GEMM waits where an ALU holds.
ROWS = load_config(
    "tiny",
    ["block_in=8", "wgt_bytes=4096", "inp_bytes=512", "window_taps=2", "window_rows=2",
     "forwarding=1"],
)  # fmt: skip
# An entry of INP is longer than one of ACC: LOAD holds more beats than a vector of ACC has.
LONG_ENTRIES = load_config("tiny", ["block_in=32", "forwarding=1"])
SHAPES = {
    # sixteen vectors of ACC8 in an entry of INP, and four of ACC
    "sixteen times as many inputs as outputs": (
        "block_in=64", "wgt_bytes=8192", "window_taps=16", "window_rows=2", "forwarding=1",
        "table_bytes=1024", "reciprocal_units=4",
    ),
    # a vector of STORE fills four entries of INP, and several pairs of outputs see the same lanes
    "more outputs than inputs": (
        "block_in=4", "block_out=16", "wgt_bytes=8192", "acc_bytes=8192", "window_taps=2",
        "forwarding=1",
    ),
    # four vectors in an entry, all lanes from the window, one burst in flight
    "more inputs than outputs": (
        "block_in=16", "wgt_bytes=8192", "window_taps=8", "forwarding=1", "writes_in_flight=1",
    ),
    # lanes beyond the window, and numbers of lanes that are no power of two
    "twelve lanes": (
        "block_in=12", "block_out=12", "inp_bytes=3072", "wgt_bytes=4608", "acc_bytes=1536",
        "window_taps=3",
    ),
    # twelve lanes are no power of two, nor are 85 entries of INP
    "two rows of twelve lanes": (
        "block_in=12", "block_out=12", "inp_bytes=1020", "wgt_bytes=4608", "acc_bytes=1536",
        "window_taps=3", "window_rows=2",
    ),
    # pairs of outputs share lanes, and there are lanes beyond the window
    "two rows, more outputs than inputs": (
        "block_in=16", "block_out=32", "inp_bytes=1024", "wgt_bytes=16384", "acc_bytes=16384",
        "window_taps=3", "window_rows=2", "vector_engine=1",
    ),
}  # fmt: skip


def assert_equal(config, programs, coverage=None):
    *_, tally = lockstep.lockstep(Machines(config), programs, 0, coverage=coverage)
    assert tally.programs == programs
    assert not tally.failed, (tally.differences, tally.unexpected)


@pytest.mark.parametrize(
    "config", [pytest.param(SMALL, marks=pytest.mark.long), ROWS], ids=["one row", "two rows"]
)
def test_forwarding_and_the_window(config):
    assert_equal(config, 100)


@pytest.mark.long
def test_entries_of_inp_longer_than_those_of_acc():
    """A LOAD of ACC wrote the beats before its own."""
    assert_equal(LONG_ENTRIES, 40)


@pytest.mark.long
@pytest.mark.parametrize("config", [SMALL, ROWS], ids=["one row", "two rows"])
def test_every_goal_is_reached(config):
    """Those of the options among them."""
    coverage = Coverage(config)
    assert_equal(config, 300, coverage)
    assert coverage.missing == []


@pytest.mark.long
@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_other_shapes(settings):
    assert_equal(load_config("tiny", settings), 300)


@pytest.mark.long
@pytest.mark.parametrize("config", [
    load_config("paper-ring"), load_config("narrow", ["forwarding=1", "window_taps=3"]), SMALL,
    load_config("narrow", ["window_taps=2", "window_rows=2", "vector_engine=1"]), ROWS,
], ids=["paper-ring", "narrow", "small", "narrow, two rows", "small, two rows"])  # fmt: skip
def test_five_thousand_programs(config):
    assert_equal(config, 5000)


FAULTS = {
    "STORE writes INP though LOAD does": (
        memories, "Memories", "_share_inp", "other.inp_taken.eq(taken)",
        "other.inp_taken.eq(0)",
    ),
    "LOAD says that it writes INP while it has no beat": (
        write, "Writer", "__init__", "ports.beat_waits & position.beats.end",
        "position.beats.end",
    ),
    "a beat goes to its neighbour's column": (
        memories, "Memories", "_share_inp", "enable | other.inp.enable",
        "enable | other.inp.enable[::-1]",
    ),
    "a beat for INP waits for answers": (
        sender, "Sender", "_connect", "Mux(chosen, waits, offered)", "offered",
    ),
    "a beat beyond INP is looked for in DRAM": (
        sender, "Sender", "_go_on", "place, pages, self.chosen", "place, pages, {}",
    ),
    "a vector for INP is taken for a raw one": (
        reader, "Reader", "_connect", "is_narrow(self.config, self.ports.head.memory)",
        "self.ports.head.memory == 3",
    ),
    "an instruction finds the vectors of the one before": (
        window, "WindowMicroOps", "feed", " & ~read.last", "",
    ),
    "a GEMM without the flag sees the window": (
        window, "WindowMicroOps", "feed", "used.eq(read.operation.window)", "used.eq(1)",
    ),
    "both outputs of a pair see one channel": (
        window, "Window", "_place", "at % 2", "0",
    ),
    "vectors are a step too old": (
        window, "Window", "sees", "[place.age]", "[min(place.age + 1, 2)]",
    ),
}  # fmt: skip
FAULTS_OF_ROWS = {
    "the second row's pitch is the next instruction's": (
        window, "SecondRowMicroOps", "take", "m.d.sync += self.pitch.eq(word.pitch)",
        "kept, self.pitch = self.pitch, word.pitch; m.d.sync += kept.eq(word.pitch)",
    ),
    "a second row beyond INP is read": (
        decide, "Decide", "_gemm_beyond", "place.when(self.ports.f1.operation) & outside", "0",
    ),
    "a pitch that nothing reads is beyond INP": (
        decide, "Decide", "_gemm_beyond", "place.when(self.ports.f1.operation) & outside",
        "outside",
    ),
    "the second row is the first": (
        window, "Window", "_place", "WindowLane(row, at // 2",
        "WindowLane(0, at // 2",
    ),
    "the second row is a step ahead": (
        window, "Window", "_place", "WindowLane(row, at // 2",
        "WindowLane(row, max(at // 2 - row, 0)",
    ),
    "the second row keeps a vector from the instruction before": (
        window, "Window", "__init__", "self._history(vector, goes_on, name)",
        "self._history(vector, goes_on if name == \"before\" else used, name)",
    ),
}  # fmt: skip
FAULTS_OF_LONG_ENTRIES = {
    "a vector of ACC is that of the beats before": (
        memory_ports, "MemoryWrites", "_vector", "taken[-8 * self.config.acc_entry :]", "taken",
    ),
}  # fmt: skip
EVERY_FAULT = {SMALL: FAULTS, ROWS: FAULTS_OF_ROWS, LONG_ENTRIES: FAULTS_OF_LONG_ENTRIES}
PLANTED = [
    (config, name, faults[name]) for config, faults in EVERY_FAULT.items() for name in faults
]


@pytest.mark.long
@pytest.mark.parametrize(("config", "name", "fault"), PLANTED, ids=[name for _, name, _ in PLANTED])
def test_planted_faults_are_found(config, name, fault, monkeypatch, tmp_path):
    """Each within 300 programs."""
    plant(fault, monkeypatch, tmp_path)
    tallies = lockstep.lockstep(Machines(config), 300, 0, keep=0)
    found = next((t.programs for t in tallies if t.mismatches), None)
    assert found is not None
    print(f"{name}: found by program {found}")
