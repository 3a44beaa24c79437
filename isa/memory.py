"""The memory behind an accelerator's port: a latency and a rate, or banks as a DRAM has them.

The numbers are cycles of the accelerator's clock. docs/timing.md says what they mean to the cycle:
section 2 for a memory without banks, section 12 for one with them. A board's file derives its banks
from the datasheet of its chip (``vdla.boards``); a config's ``[memory.banks]`` table holds them.
"""

from __future__ import annotations

from dataclasses import dataclass

from vdla.isa.parameters import ConfigError, check_ranges, parameter

MOST_BANKS = 16
MOST_CYCLES = 1 << 16  # that a bank may keep a command waiting


def _cycles(doc: str, low: int = 1) -> int:
    wait: int = parameter(doc, low=low, high=MOST_CYCLES)
    return wait


@dataclass(frozen=True)
class Banks:
    """Banks with one open row each, and a controller in front of them: docs/timing.md, section 12.

    Waits are whole cycles from the cycle of one command to that of the next; the symbols are those
    of JEDEC's standards. ``clock_ratio`` decides none of them: a board computes its numbers, and
    makes its clocks, for the ratio that a config asks for.
    """

    count: int = parameter("banks; a power of two", high=MOST_BANKS)
    row_bytes: int = parameter("bytes of a row; a power of two", high=1 << 16)
    requests: int = parameter("bursts that the controller works on at once", high=2)
    read_cycles: int = _cycles("from a read's column command to its beat at the port")
    write_cycles: int = _cycles("from a write's last column command to its answer")
    activate: int = _cycles("from ACTIVATE to a column command of the bank (tRCD)")
    precharge: int = _cycles("from PRECHARGE to ACTIVATE of the bank (tRP)")
    row_open: int = _cycles("from ACTIVATE to PRECHARGE of the bank (tRAS)")
    row_cycle: int = _cycles("from ACTIVATE to ACTIVATE of the bank (tRC)")
    other_row: int = _cycles("from ACTIVATE to ACTIVATE of another bank (tRRD)")
    read_recovery: int = _cycles("from a read's column command to PRECHARGE of the bank (tRTP)")
    write_recovery: int = _cycles("from a write's column command to PRECHARGE of the bank (tWR)")
    read_to_write: int = _cycles("from a read's column command to a write's")
    write_to_read: int = _cycles("from a write's column command to a read's (tWTR)")
    refresh_interval: int = _cycles("from one due refresh to the next (tREFI)")
    refresh_cycles: int = _cycles("from REFRESH to ACTIVATE of any bank (tRFC)")
    refreshes_put_off: int = parameter("due refreshes that requests may go before", low=0, high=8)
    start_cycles: int = _cycles("of a program, in which a refresh takes place and nothing moves")
    clock_ratio: int = parameter(
        "clocks of the DRAM in a cycle, as the board makes them", 1, high=2
    )

    def __post_init__(self) -> None:
        """Checks ranges, that rows and banks are bits of an address, and that refreshes end.

        Raises:
            ConfigError: there can be no such memory.
        """
        check_ranges("memory.banks", self)
        for name in ("count", "row_bytes"):
            if (value := getattr(self, name)) & (value - 1):
                raise ConfigError(
                    f"memory.banks: expected {name} to be a power of two, found {value}"
                )
        if (least := self.precharge + self.refresh_cycles) >= self.refresh_interval:
            raise ConfigError(
                f"memory.banks: expected refresh_interval > precharge + refresh_cycles = {least}, "
                f"found {self.refresh_interval}"
            )


@dataclass(frozen=True)
class Memory:
    """The memory behind the accelerator's port: docs/timing.md, sections 2 and 12."""

    latency: int = parameter("cycles from an accepted read to its first beat", 64, low=0)
    bytes_per_cycle: int = parameter("bandwidth shared by reads and writes", 8)
    banks: Banks | None = None

    def __post_init__(self) -> None:
        """Checks ranges.

        Raises:
            ConfigError: a number is out of its range.
        """
        check_ranges("memory", self)

    @property
    def name(self) -> str:
        """Name of the model in published figures."""
        if self.banks is None:
            return f"{self.latency} cycles, {self.bytes_per_cycle} B/cycle"
        return f"{self.banks.count} banks, {self.first_beat} cycles, {self.bytes_per_cycle} B/cycle"

    @property
    def first_beat(self) -> int:
        """Cycles from an accepted read to its first beat where nothing else is asked for: of a bank
        that is closed, if there are banks."""
        if self.banks is None:
            return self.latency
        return self.latency + CHECK_CYCLES + self.banks.activate + self.banks.read_cycles


CHECK_CYCLES = 2  # of a request before its ACTIVATE, beyond the one it is accepted in
