"""Simulator and RTL agree where lanes of GEMM are in the fabric: no cycle and no result differ."""

from __future__ import annotations

import pytest

from vdla.analysis import lockstep
from vdla.analysis.machines import Machines
from vdla.isa.config import load_config

CONFIGS = {
    "half of tiny": load_config("tiny", ["fabric_lanes=2"]),
    "with all options": load_config(
        "tiny",
        [
            *("fabric_lanes=4", "window_taps=2", "forwarding=1", "vector_engine=1"),
            *("table_bytes=512", "reciprocal_units=2"),
        ],
    ),
    "narrow, with two rows": load_config(
        "narrow", ["fabric_lanes=6", "window_taps=2", "window_rows=2"]
    ),
}


def assert_equal(config, programs):
    *_, tally = lockstep.lockstep(Machines(config), programs, 0)
    assert tally.programs == programs
    assert not tally.failed, (tally.differences, tally.unexpected)


def test_fabric_lanes():
    assert_equal(CONFIGS["with all options"], 60)


@pytest.mark.long
@pytest.mark.parametrize("name", CONFIGS)
def test_five_thousand_programs(name):
    assert_equal(CONFIGS[name], 5000)
