"""TUL PYNQ-Z2: a Zynq XC7Z020 and 512 MiB of DDR3, under PYNQ's Linux.

    python -m vdla.boards.pynq_z2 [CONFIG] [TOOLCHAIN]      as `vdla synth --board pynq-z2`

Clock: FCLK_CLK0 of the processing system, 100 MHz (1 GHz of its I/O PLL by 10). Memory: the
processor's DRAM through S_AXI_HP0, of which PYNQ's image keeps 128 MiB to be allocated in one
piece. Host: the processor itself; the overlay gives it the registers as a UIO device. LEDs LD0 to
LD3 (pins as in TUL's master XDC) show RUNNING, DONE, FAULT, STOPPING.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from vdla.boards.board import Board
from vdla.boards.zynq import XC7Z020, ZYNQ_7000, Part
from vdla.isa.config import Config

if TYPE_CHECKING:
    from amaranth.vendor import XilinxPlatform

    from vdla.boards.soc import zynq as soc

PART = Part("xc7z020", "clg400", "1")
LEDS = "R14 P14 N16 M14"

BOARD = Board(
    name="pynq-z2",
    title="TUL PYNQ-Z2",
    device="xc7z020clg400-1",
    config="paper",
    clock_hz=100e6,
    memory_bytes=128 << 20,
    reach="axi",
    toolchains=("vivado", "xray", "yosys"),
    available=XC7Z020,
)


def Top(config: Config) -> soc.Top:
    """The board's design."""
    from vdla.boards.soc.zynq import Top

    return Top(config, ZYNQ_7000, BOARD.clock_hz)


def platform(toolchain: str = "Vivado") -> XilinxPlatform:
    """Amaranth's platform."""
    from vdla.boards.soc.zynq import platform

    return platform(PART, LEDS, toolchain)


if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
