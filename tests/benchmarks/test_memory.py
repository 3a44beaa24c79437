"""benchmarks/memory.py: LOADs get most of what the ULX3S's chip can move, on the board's RTL."""

from __future__ import annotations

import pytest
from rich.console import Console
from scripts import load_script

from vdla.boards import find_module
from vdla.isa.config import load_config

memory = load_script("benchmarks/memory.py")
CONFIG = load_config("ulx3s")
BYTES = 2 * CONFIG.inp_bytes


def bench(requests):
    return memory.bench_of(find_module("ulx3s"), CONFIG, requests, Console(stderr=True))


@pytest.fixture(scope="module")
def two():
    return bench(2)


@pytest.mark.long
@pytest.mark.parametrize("run", [64, 256, 1024, 4096])
def test_loads_get_at_least_85_percent(two, run):
    board, of = two
    for step in memory.steps(run, of.banks).values():
        assert memory.share(board, memory.Stream(run, step, BYTES), of) >= 0.85


@pytest.mark.long
def test_a_row_is_opened_while_columns_move(two):
    """A run of 16 bytes takes eight cycles of the bus. The next run's row, in another bank, is
    opened in them, unless the controller works on one request at a time."""
    board, of = two
    stream = memory.Stream(16, of.banks.row_bytes, CONFIG.inp_bytes)
    assert memory.share(board, stream, of) > 0.9
    one, behind = bench(1)
    assert memory.share(one, stream, behind) < 0.7
