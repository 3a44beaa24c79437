"""SDR SDRAMs by their datasheets: sizes, times, commands and pins.

The chip has one clock, or two, in a cycle of the controller, which is a cycle of the core.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from math import ceil, floor

from amaranth.lib.wiring import In, Out, Signature

from vdla.boards.board import BoardError

ALL_BANKS = 1 << 10  # A10 of PRECHARGE
POWER_UP_REFRESHES = 8
MOST_PUT_OFF = 8  # refreshes: more would leave a row without one for too long


def whole_clocks(nanoseconds: float, clock_hz: float) -> int:
    """The least number of clocks that last ``nanoseconds``."""
    return ceil(nanoseconds * clock_hz / 1e9 - 1e-6)


@dataclass(frozen=True)
class Chip:
    """An SDRAM by its datasheet: sizes in bits, times in nanoseconds.

    CAS latencies are clocks from a read command to its first word: ``clock`` is the shortest clock
    at each, ``access`` the time from a clock's edge to its word. A word stays for ``hold`` after
    the next edge; inputs have to be valid for ``setup`` before an edge and ``keep`` after it.
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
    clock: Mapping[int, float] = field(hash=False)  # tCK, by CAS latency
    access: Mapping[int, float] = field(hash=False)  # tAC, by CAS latency
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

    def cas(self, chip_hz: float) -> int:
        """The least CAS latency at a clock of the chip.

        Raises:
            BoardError: the clock is too fast for the chip.
        """
        fit = [cas for cas, least in self.clock.items() if chip_hz * least <= 1e9 * (1 + 1e-9)]
        if not fit:
            most = floor(1e4 / min(self.clock.values())) / 10
            raise BoardError(
                f"memory {self.name}: expected a clock of at most {most:g} MHz, "
                f"found {chip_hz / 1e6:g}"
            )
        return min(fit)


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
    clock={2: 10, 3: 7},
    access={2: 6, 3: 5.4},
    hold=2.5,
    setup=1.5,
    keep=0.8,
)
# Etron EM638325: size, refresh and clock by an excerpt of rev. 1.4 (October 2005); the other times
# are what other projects have for it or for chips of that grade, the slower ones.
EM638325 = Chip(
    name="EM638325-7",
    row_bits=11,
    column_bits=8,
    bank_bits=2,
    word_bits=32,
    power_up=200_000,
    refresh_ms=32,  # 4,096 refreshes in 64 ms, so 2,048 rows in half of that
    precharge=21,
    activate=21,
    row_open=42,
    row_open_most=100_000,
    row_cycle=63,
    other_row=14,
    write_recovery=23,  # two clocks from 45 MHz on
    mode_clocks=2,
    clock={2: 10, 3: 7},
    access={2: 6, 3: 5.5},
    hold=2,
    setup=1.5,
    keep=1,
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


def pins(chip: Chip, words: int = 1) -> Signature:
    """Signals that go to the pads' registers, and ``word_in``, which comes from them; ``words`` of
    the chip at a time, the first in the low bits."""
    return Signature(
        {
            "enable": Out(1),  # CKE
            "command": Out(4, init=Command.NOTHING),  # cs, ras, cas, we
            "bank": Out(chip.bank_bits),
            "address": Out(chip.address_pins),
            "mask": Out(chip.word_bits // 8),
            "word_out": Out(words * chip.word_bits),
            "drive": Out(1),
            "word_in": In(words * chip.word_bits),
        }
    )
