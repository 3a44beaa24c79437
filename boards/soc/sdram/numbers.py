"""The controller's numbers: what a chip's datasheet comes to in cycles of a clock.

The controller's timers and the simulator's memory model both take them from here.
"""

from __future__ import annotations

from functools import partial

from vdla.boards.board import BoardError
from vdla.boards.soc.sdram.chip import Chip, whole_clocks
from vdla.boards.soc.sdram.pads import ONE_CLOCK, Pads
from vdla.isa.memory import Banks, Memory
from vdla.support.numbers import ceil_div

REFRESHES_PUT_OFF = 4  # of eight; the rest is for a request under way, however long
BURSTS = (1, 2, 4, 8)  # words that the chip moves by one column command
BUS_FREE = 1  # clocks of the chip in which neither side drives the data pins
ANSWER = 1  # cycles from a column command that writes to the answer at the port


def words_of(chip: Chip, port_bytes: int, ratio: int = 1) -> int:
    """Words of the chip in one beat, which one column command moves; ``ratio`` of them, or more, as
    so many pass in a cycle.

    Raises:
        BoardError: a beat isn't one of the chip's bursts.
    """
    bursts = [words for words in BURSTS if words >= ratio]
    widths = [words * chip.word_bits // 8 for words in bursts]
    if port_bytes not in widths:
        raise BoardError(
            f"memory {chip.name}: expected port_bytes {', '.join(map(str, widths[:-1]))} or "
            f"{widths[-1]}, found {port_bytes}"
        )
    return bursts[widths.index(port_bytes)]


def banks(
    chip: Chip,
    clock_hz: float,
    port_bytes: int,
    requests: int = 2,
    refreshes_put_off: int = REFRESHES_PUT_OFF,
    pads: Pads = ONE_CLOCK,
) -> Banks:
    """The chip behind its controller, in cycles of ``clock_hz``, of which each is ``pads.ratio``
    clocks of the chip.

    Commands lie a whole number of cycles apart, so a time of the datasheet is so many cycles as
    last no less, and a number of clocks as many cycles as have no fewer.

    Raises:
        BoardError: a beat isn't one of the chip's bursts, or the clock is too fast for the chip.
    """
    ratio, chip_hz = pads.ratio, pads.ratio * clock_hz
    words, cas = words_of(chip, port_bytes, ratio), chip.cas(chip_hz)
    beat_cycles = words // ratio
    clocks = partial(whole_clocks, clock_hz=clock_hz)
    row_cycle, refresh_cycles = clocks(chip.row_cycle), clocks(chip.row_cycle)
    other_row, precharge = max(clocks(chip.other_row), 1), clocks(chip.precharge)
    row_open = clocks(chip.row_open)
    read_recovery = beat_cycles  # the burst's last words come out of the closed row
    recovers = max(whole_clocks(chip.write_recovery, chip_hz), 1)
    write_recovery = ceil_div(words - 1 + recovers, ratio)
    read_to_write = ceil_div(cas + words + BUS_FREE, ratio)
    # At cycle 0 any command may have been given, so the refresh of a start waits for all.
    closes = max(refresh_cycles, row_open, read_recovery, write_recovery)
    refreshes = max(closes + precharge, row_cycle, other_row)
    return Banks(
        count=1 << chip.bank_bits,
        row_bytes=(chip.word_bits // 8) << chip.column_bits,
        requests=requests,
        read_cycles=pads.word_cycles(cas) + beat_cycles,
        write_cycles=ANSWER,
        activate=clocks(chip.activate),
        precharge=precharge,
        row_open=row_open,
        row_cycle=row_cycle,
        other_row=other_row,
        read_recovery=read_recovery,
        write_recovery=write_recovery,
        read_to_write=read_to_write,
        write_to_read=beat_cycles,
        refresh_interval=chip.refresh_clocks(clock_hz),
        refresh_cycles=refresh_cycles,
        refreshes_put_off=refreshes_put_off,
        start_cycles=max(refreshes + refresh_cycles, read_to_write),
        clock_ratio=ratio,
    )


def memory(
    chip: Chip,
    clock_hz: float,
    port_bytes: int,
    requests: int = 2,
    refreshes_put_off: int = REFRESHES_PUT_OFF,
    pads: Pads = ONE_CLOCK,
) -> Memory:
    """Memory behind the core's port: the controller's banks, and the chip's words of a cycle.

    Raises:
        BoardError: as for ``banks``.
    """
    return Memory(
        latency=0,
        bytes_per_cycle=pads.ratio * chip.word_bits // 8,
        banks=banks(chip, clock_hz, port_bytes, requests, refreshes_put_off, pads),
    )
