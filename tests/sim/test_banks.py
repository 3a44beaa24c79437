"""A memory with banks: cycles worked out by hand from docs/timing.md, section 12, on ``tiny``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vdla.isa.config import load_config
from vdla.isa.instructions import Finish, Load, Mem, Store
from vdla.isa.memory import Banks, Memory
from vdla.sim.stream import Stream
from vdla.sim.timing import Clock

TINY = load_config("tiny")
BANKS = Banks(
    count=2,
    row_bytes=64,
    requests=2,
    read_cycles=5,
    write_cycles=3,
    activate=2,
    precharge=2,
    row_open=3,
    row_cycle=4,
    other_row=1,
    read_recovery=2,
    write_recovery=3,
    read_to_write=6,
    write_to_read=4,
    refresh_interval=10_000,
    refresh_cycles=7,
    refreshes_put_off=4,
    start_cycles=10,
)
FETCHED = 0x1000  # where programs lie: rows of their own, in bank 0


def run(*instructions, cycles=2, latency=0, stepped=False, **numbers):
    """The program's clock behind banks; ``cycles``: from one column command to the next."""
    banks = replace(BANKS, **numbers)
    memory = Memory(latency, TINY.port_bytes // cycles, banks)
    stream = Stream.of(replace(TINY, memory=memory), [*instructions, Finish()], base=FETCHED)
    return Clock(stream, np.zeros(0x4000, np.uint8), stepped=stepped)


def load(address, entries, **fields):
    """Loads entries of INP, which have one beat each."""
    size = {"x_size": entries, "y_size": 1, "z_size": 1}
    return Load(memory=Mem.INP, dram_base=address, **size, **fields)


# The first instruction is complete when its 8 beats are. Fetch asks in cycle 0 for all of the 16;
# the request is in NEXT in 1, and waits for cycle 10, its check. ACTIVATE comes in 11, columns in
# 13, 15 and so on; the eighth, in 27, moves its beat in 32. It is dispatched in 34, starts in 36.
FIRST = 36


def test_the_first_instruction_starts_after_a_refresh_a_row_and_eight_columns():
    assert run(load(0, 1)).start[0] == FIRST


@pytest.mark.parametrize(
    ("numbers", "later"),
    [
        ({"start_cycles": 13}, 3),
        ({"activate": 6}, 4),
        ({"read_cycles": 6}, 1),
        ({"cycles": 4}, 14),
        ({"latency": 20}, 12),  # taken in 21 and checked in 22, not in 10
        ({"requests": 1}, 0),
    ],
)
def test_what_the_first_instruction_waits_for(numbers, later):
    assert run(load(0, 1), **numbers).start[0] == FIRST + later


def test_the_row_of_another_bank_is_opened_beside_columns():
    """The request comes in 38, is taken in 39 and checked in 40; fetch moves beats until 43.

    In bank 1 ACTIVATE comes in 41, the column in 45, the beat in 50, its entry in 51. In another
    row of bank 0 the check comes in 44, PRECHARGE in 45, ACTIVATE in 47, the column in 49.
    """
    another_bank, another_row = run(load(0x40, 1)), run(load(0x80, 1))
    assert (another_bank.finish[0], another_row.finish[0]) == (51, 55)


def test_a_single_place_checks_each_request_when_the_one_before_has_moved():
    one, two = (run(*[load(0, 8)] * 4, requests=n).cycles for n in (1, 2))
    assert one > two


def test_refreshes_wait_for_idle_time_until_so_many_are_due():
    """A refresh takes 2 + 7 cycles and a row that is opened again."""
    busy = [load(0, 64, pad_x0=0)] * 8
    never, late, soon = (
        run(*busy, refresh_interval=interval, refreshes_put_off=off).cycles
        for interval, off in ((10_000, 0), (100, 7), (100, 0))
    )
    assert never < late < soon


def test_a_write_is_answered_after_its_last_column():
    store = Store(memory=Mem.ACC, dram_base=0x40, x_size=1, y_size=1, z_size=1)
    answered = [run(store, write_cycles=n).finish[0] for n in (3, 8)]
    assert answered[1] - answered[0] == 5


def test_reads_and_writes_turn_the_bus_around():
    store = Store(memory=Mem.ACC, dram_base=0x40, x_size=8, y_size=1, z_size=1)
    both = [load(0, 64)] * 4 + [store] * 4
    assert run(*both).cycles < run(*both, read_to_write=30).cycles


@pytest.mark.parametrize("requests", [1, 2])
def test_no_cycle_is_estimated_that_is_passed_over(requests):
    store = Store(memory=Mem.ACC, dram_base=0x38, x_size=8, y_size=1, z_size=1)
    program = [load(0x20, 40), store, load(0x1000, 3), store, load(0x84, 9)]
    numbers = {"requests": requests, "refresh_interval": 70, "latency": 3}
    quick, stepped = (run(*program, stepped=each, **numbers) for each in (False, True))
    assert quick.cycles == stepped.cycles
    assert quick.start.tolist() == stepped.start.tolist()
    assert quick.finish.tolist() == stepped.finish.tolist()


def test_a_machine_that_stands_still_is_deadlocked_although_refreshes_go_on():
    assert run(load(0, 1, pop_next=1)).cycles == -1
