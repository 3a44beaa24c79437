"""DDR3 behind the port of a Zynq's processing system, as docs/timing.md, section 12, has memories.

A model, not a measurement: times of the chip are its datasheet's, the port's are assumed where
nothing is published. It has one data path, as section 12 has, where the port has one for reads and
one for writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from vdla.isa.memory import CHECK_CYCLES, Banks, Memory


@dataclass(frozen=True)
class Ddr3:
    """A DDR3 chip by its datasheet: nanoseconds, and ``nck`` in clocks of the chip."""

    name: str
    banks: int
    columns: int
    word_bits: int
    activate: float  # tRCD
    precharge: float  # tRP
    row_open: float  # tRAS
    row_cycle: float  # tRC
    other_row: float  # tRRD, of a page of 2 KB
    read_recovery: float  # tRTP
    write_recovery: float  # tWR, from the last word
    write_to_read: float  # tWTR, from the last word
    refresh_cycles: float  # tRFC
    refresh_interval: float  # tREFI, up to 85 °C
    least_nck: int  # of tRRD, tRTP and tWTR


MT41K256M16 = Ddr3(  # Micron 4Gb x4/x8/x16 DDR3L SDRAM, speed -125 (DDR3-1600 at CL 11)
    name="MT41K256M16-125",
    banks=8,
    columns=1024,  # a page of 2 KB
    word_bits=16,
    activate=13.75,
    precharge=13.75,
    row_open=35,
    row_cycle=48.75,
    other_row=7.5,
    read_recovery=7.5,
    write_recovery=15,
    write_to_read=7.5,
    refresh_cycles=260,  # of a chip of 4 Gbit
    refresh_interval=7800,
    least_nck=4,
)

DRAM_HZ = 525e6  # PYNQ-Z1, PYNQ-Z2 and Arty Z7: 1,050 Mbit/s a pin, Digilent's presets of the PS
BURST = 4  # clocks of the chip that a burst of eight words takes
CAS, CAS_WRITE = 7, 6  # CL and CWL at 525 MHz (DDR3-1066F)
# From a read at S_AXI_HP0 to its first beat, the row closed: an assumption in nanoseconds, config
# paper's 64 cycles at 200 MHz. Xilinx's UG585 gives no figure for it.
FIRST_BEAT = 320.0
ANSWER = 160.0  # ns from a write's column command to its answer: an assumption, half of that
REQUESTS = 2  # the port accepts eight (UG585, 5.3); section 12 has places for two
PUT_OFF = 0  # refreshes: the controller's register has them take place when they are due
START = 1  # cycles: nothing is done when a program starts


def hp_memory(chip: Ddr3, clock_hz: float) -> Memory:
    """A chip behind S_AXI_HP0, in cycles of the fabric's clock."""

    def cycles(nanoseconds: float, clocks: int = 0) -> int:
        """Whole cycles that last so long, and so many clocks of the chip, at least."""
        return max(ceil(nanoseconds * clock_hz / 1e9 - 1e-6), of_clocks(clocks), 1)

    def of_clocks(clocks: float) -> int:
        return ceil(clocks * clock_hz / DRAM_HZ - 1e-6)

    nanosecond = DRAM_HZ / 1e9  # clocks of the chip
    activate = cycles(chip.activate)
    read_cycles = of_clocks(CAS + BURST)
    written = CAS_WRITE + BURST  # clocks from a write's column command to behind its last word
    least = chip.least_nck
    banks = Banks(
        count=chip.banks,
        row_bytes=chip.columns * chip.word_bits // 8,
        requests=REQUESTS,
        read_cycles=read_cycles,
        write_cycles=cycles(ANSWER),
        activate=activate,
        precharge=cycles(chip.precharge),
        row_open=cycles(chip.row_open),
        row_cycle=cycles(chip.row_cycle),
        other_row=cycles(chip.other_row, least),
        read_recovery=cycles(chip.read_recovery, least),
        write_recovery=of_clocks(written + chip.write_recovery * nanosecond),
        read_to_write=of_clocks(CAS + BURST + 2 - CAS_WRITE),  # JEDEC JESD79-3F, 4.13.2
        write_to_read=of_clocks(written + max(chip.write_to_read * nanosecond, least)),
        refresh_interval=int(chip.refresh_interval * clock_hz / 1e9),
        refresh_cycles=cycles(chip.refresh_cycles),
        refreshes_put_off=PUT_OFF,
        start_cycles=START,
    )
    return Memory(
        latency=max(cycles(FIRST_BEAT) - CHECK_CYCLES - activate - read_cycles, 0),
        bytes_per_cycle=int(2 * DRAM_HZ * chip.word_bits / 8 / clock_hz),
        banks=banks,
    )
