"""SDR SDRAMs by their datasheets: sizes, times, commands and pins.

A clock of the chip is a cycle of the controller, which is a cycle of the core.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from math import ceil

from amaranth.lib.wiring import In, Out, Signature

CAS = 2  # clocks from a read command to its first word, by the chip's count
ALL_BANKS = 1 << 10  # A10 of PRECHARGE
POWER_UP_REFRESHES = 8
MOST_PUT_OFF = 8  # refreshes: more would leave a row without one for too long


def whole_clocks(nanoseconds: float, clock_hz: float) -> int:
    """The least number of clocks that last ``nanoseconds``."""
    return ceil(nanoseconds * clock_hz / 1e9 - 1e-6)


@dataclass(frozen=True)
class Chip:
    """An SDRAM by its datasheet: sizes in bits, times in nanoseconds.

    ``cas2_mhz``: the fastest clock at CAS latency 2. ``access``, ``hold``: output valid after the
    clock, and until after the next; ``setup``, ``keep``: of its inputs, before and after.
    """

    name: str
    row_bits: int
    column_bits: int
    bank_bits: int
    word_bits: int
    power_up: float
    refresh_ms: float
    precharge: float  # tRP
    activate: float  # tRCD
    row_open: float  # tRAS, at least
    row_open_most: float  # tRAS, at most
    row_cycle: float  # tRC, also tRFC
    other_row: float  # tRRD
    write_recovery: float  # tWR, tDPL
    mode_clocks: int  # tMRD
    cas2_mhz: float
    access: float
    hold: float
    setup: float
    keep: float

    @property
    def address_pins(self) -> int:
        """A10 of PRECHARGE is one of them, however few the rows."""
        return max(self.row_bits, self.column_bits, 11)

    @property
    def address_bits(self) -> int:
        """Bits of a byte's address."""
        word = (self.word_bits // 8 - 1).bit_length()
        return self.row_bits + self.bank_bits + self.column_bits + word

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return 1 << self.address_bits

    def refresh_clocks(self, clock_hz: float) -> int:
        """From one refresh to the next."""
        return int(self.refresh_ms * 1e6 / (1 << self.row_bits) * clock_hz / 1e9)


AS4C16M16SA = Chip(  # Alliance Memory AS4C16M16SA-7, rev. 3.0 (March 2015), table 16
    name="AS4C16M16SA-7",
    row_bits=13,
    column_bits=9,
    bank_bits=2,
    word_bits=16,
    power_up=200_000,
    refresh_ms=64,
    precharge=21,
    activate=21,
    row_open=42,
    row_open_most=100_000,
    row_cycle=63,
    other_row=14,
    write_recovery=14,
    mode_clocks=2,
    cas2_mhz=100,
    access=6,
    hold=2.5,
    setup=1.5,
    keep=0.8,
)


class Command(IntEnum):
    """cs, ras, cas, we as the chip wants them: lowest bit we, all active low."""

    MODE = 0b0000
    REFRESH = 0b0001
    PRECHARGE = 0b0010
    ACTIVATE = 0b0011
    WRITE = 0b0100
    READ = 0b0101
    NOTHING = 0b0111


def pins(chip: Chip) -> Signature:
    """Signals that go to the pads' registers, and ``words_in``, which comes from them."""
    return Signature(
        {
            "enable": Out(1),  # CKE
            "command": Out(4, init=Command.NOTHING),  # cs, ras, cas, we
            "bank": Out(chip.bank_bits),
            "address": Out(chip.address_pins),
            "mask": Out(chip.word_bits // 8),
            "word_out": Out(chip.word_bits),
            "drive": Out(1),
            "word_in": In(chip.word_bits),
        }
    )
