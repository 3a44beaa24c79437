"""The state of the memory and its bus, and of the controller in front of a memory with banks."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from vdla.isa.memory import MOST_BANKS
from vdla.sim.stream import Rows
from vdla.sim.timing.part import Part

RING = 1024  # slots of each ring; a power of two above everything that can be in flight
NONE = -1  # a row: of no instruction
NEVER = int(np.iinfo(np.int64).max)  # a cycle

Ring = Annotated[Rows, (RING,)]
PerReader = Annotated[Rows, (2,)]  # BY_FETCH, BY_LOAD
PerPlace = Annotated[Rows, (2,)]  # NOW, NEXT
PerBank = Annotated[Rows, (MOST_BANKS,)]


class Reads(Part):
    """Read bursts that were accepted and have not been delivered, or, by a memory with banks, not
    taken: a ring."""

    head: int
    tail: int
    left: int  # beats of the one at the head
    reader: Ring
    beats: Ring
    address: Ring  # of its next beat
    ready: Ring  # the cycle from which its first beat may move, or it may be taken


class Answers(Part):
    """Answers to write bursts, on their way: a ring."""

    head: int  # answers seen so far
    timed: int  # those whose cycle is known
    tail: int
    at: Ring  # the cycle in which it is seen
    bad: Ring  # whether a beat of the burst bore an error


class Memory(Part):
    """The memory and its bus."""

    reads: Reads
    open_reads: PerReader  # bursts accepted and not delivered to their last beat
    arrived: PerReader  # beats delivered
    answers: Answers
    bus_free: int  # the cycle from which the bus takes the next beat
    served_write: bool  # whether the last beat was written


class Dram(Part):
    """The numbers of a memory with banks that decide cycles: ``vdla.isa.memory.Banks`` has them."""

    count: int
    row_bytes: int
    requests: int
    read_cycles: int
    write_cycles: int
    activate: int
    precharge: int
    row_open: int
    row_cycle: int
    other_row: int
    read_recovery: int
    write_recovery: int
    read_to_write: int
    write_to_read: int
    refresh_interval: int
    refresh_cycles: int
    refreshes_put_off: int
    start_cycles: int


class Writes(Part):
    """The registers for a write's address and for a beat."""

    address: int
    beats: int
    address_full: bool
    address_taken: bool  # that of the burst whose first beat waits
    beat_full: bool


class Coming(Part):
    """Beats that were read and have not arrived: a ring."""

    head: int
    tail: int
    at: Ring  # the cycle in which it moves
    reader: Ring
    address: Ring
    last: Ring  # whether it is its burst's last


class Controller(Part):
    """The controller of a memory with banks: its two places, its banks, its refreshes."""

    # The places, NOW and NEXT.
    stage: PerPlace  # EMPTY, CHECK, CLOSE, OPEN or READY
    write: PerPlace
    reader: PerPlace
    address: PerPlace  # of the next beat
    left: PerPlace  # beats
    bank: PerPlace
    row: PerPlace  # counted from 1

    # The banks: the row that is open, and cycles from which commands may come.
    open_row: PerBank  # counted from 1; 0: none
    column_from: PerBank
    precharge_from: PerBank
    activate_from: PerBank
    other_row_from: int  # ACTIVATE of any bank
    next_column_from: int  # a column command of any kind
    read_from: int
    write_from: int

    # Refreshes.
    phase: int  # NORMAL, CLOSING or REFRESHING
    due: int
    next_due: int  # the cycle in which one more is due

    # What comes and goes.
    writes: Writes
    coming: Coming
    took_write: bool  # the last request that was taken
