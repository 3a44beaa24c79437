"""What comes from which cache, when a network runs again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vdla.compiler.targets.processor.timing.machine import Cache, machine_of
from vdla.compiler.targets.processor.timing.traffic import PAGE_BYTES, memory_seconds, traffic

KIB = 1024


@pytest.fixture
def machine():
    caches = (Cache(32 * KIB, 64), Cache(256 * KIB, 32))
    return replace(machine_of("znver4"), clock_mhz=1000, caches=caches, bytes_per_second=4e9)


def test_where_a_tensor_is_read_from(machine):
    """8 KiB stay in the first cache, 64 KiB in the second, 1 MiB comes from memory."""
    small = [(0, 8 * KIB)]
    assert traffic([small, small], machine) == [[0, 0], [0, 0]]
    middle = [(0, 64 * KIB)]
    assert traffic([middle], machine) == [[64 * KIB, 0]]
    large = [(0, 1024 * KIB)]
    assert traffic([large], machine) == [[0, 1024 * KIB]]


def test_what_comes_between_drives_out(machine):
    first, between = [(0, 8 * KIB)], [(64 * KIB, 64 * KIB + 128 * KIB)]
    rows = traffic([first, between, first], machine)
    assert rows[2] == [8 * KIB, 0]
    assert rows[0] == [0, 0]  # the step before it in the run before


def test_parts_of_pages_count_by_their_bytes(machine):
    rows = traffic([[(100, 200)], [(1 << 20, (1 << 20) + 512 * KIB)]], machine)
    assert rows[0] == [0, 100]
    assert PAGE_BYTES > 200


def test_seconds_and_what_a_step_reads_at_most(machine):
    row = [32e3, 4e6]
    assert memory_seconds(row, machine, 1e9) == pytest.approx(32e3 / 32e9 + 4e6 / 4e9)
    assert memory_seconds(row, machine, 4.032e5) == pytest.approx(1.001e-3 / 10)
    assert memory_seconds([0, 0], machine, 0) == 0
