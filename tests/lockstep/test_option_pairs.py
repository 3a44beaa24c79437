"""Every legal pair of parameters' values meets in a config, on which simulator, RTL and host agree.

The whole array is long, and another one every day: a failure names what repeats it.
"""

from __future__ import annotations

from datetime import date
from random import Random

import pytest
from array_runs import run_rows
from covering_array import (
    LARGEST,
    LEVELS,
    SMALL,
    WITH_BANKS,
    Array,
    config_of,
    declared,
    error_of,
    pairs_of,
)

PARTS = 13  # of the array, a test each
PROGRAMS, PROGRAMS_LONG = 40, 300  # on each config with RTL
TODAY = date.today().toordinal()


@pytest.fixture(scope="module")
def array():
    return Array()


def test_every_parameter_has_levels():
    """A new one needs its extremes and odd values in ``LEVELS``."""
    assert set(LEVELS) == {*declared(), WITH_BANKS}
    assert [key for key, levels in LEVELS.items() if len(levels) < 2] == []


def test_every_legal_pair_meets(array):
    met = {pair for row in array.rows if not error_of(row) for pair in pairs_of(row)}
    share = len(met & array.pairs) / len(array.pairs)
    print(f"{share:.0%} of {len(array.pairs)} pairs, in {len(array.rows)} configs")
    assert met == array.pairs
    assert Array().rows == array.rows


def test_what_is_called_impossible_is(array):
    """No legal config among many random ones has such a pair."""
    rng, legal = Random(1), 0
    for _ in range(30_000):
        row = {key: rng.choice(list(levels)) for key, levels in LEVELS.items()}
        if not error_of(row):
            legal += 1
            assert array.impossible.isdisjoint(pairs_of(row))
    assert legal > 300
    assert len(array.impossible) < len(array.pairs) / 50


def test_wide_ratios_meet_every_option_on_the_rtl(array):
    """Where both blocks differ by 8 times and more, either way."""
    for wide, narrow in (("block_in", "block_out"), ("block_out", "block_in")):
        configs = [c for c in map(config_of, array.rows) if c.macs_per_cycle <= LARGEST]
        configs = [c for c in configs if getattr(c, wide) >= 8 * getattr(c, narrow)]
        off = {"forwarding": 0, "window_taps": 0, "vector_engine": 0, "table_bytes": 0,
               "fabric_lanes": 0, "alu_groups": 1, "store_groups": 1, "weights4": 0}  # fmt: skip
        for name, value in off.items():
            assert {getattr(c, name) == value for c in configs} == {True, False}, (wide, name)


def longer_entries(row):
    """Whether an entry of INP is longer than one of ACC, and STORE writes INP."""
    config = config_of(row)
    return config.forwarding and config.inp_entry > config.acc_entry


@pytest.mark.long
@pytest.mark.parametrize("chosen", [longer_entries, lambda row: not longer_entries(row)])
def test_the_smallest_config_agrees(array, chosen):
    """Of those where an entry of INP is longer than one of ACC and may be written by STORE, and of
    the others."""
    rows = [row for row in array.rows if chosen(row) and config_of(row).macs_per_cycle <= SMALL]
    row = min(rows, key=lambda row: config_of(row).macs_per_cycle)
    runs = run_rows([row], PROGRAMS)
    assert runs.differences == []
    assert runs.programs == PROGRAMS
    assert runs.networks + runs.refused.total() == 7
    assert runs.layers > 5


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_the_whole_array_agrees(part):
    print(f"Array({TODAY}), part {part} of {PARTS}, programs from seed {TODAY} on")
    array = Array(TODAY)
    assert {pair for row in array.rows for pair in pairs_of(row)} == array.pairs
    runs = run_rows(array.rows[part::PARTS], PROGRAMS_LONG, TODAY)
    print(runs)
    assert runs.differences == []
