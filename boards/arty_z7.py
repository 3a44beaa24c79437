"""Digilent Arty Z7-20: a Zynq XC7Z020 and 512 MiB of DDR3; for this, a PYNQ-Z1 without its name.

    python -m vdla.boards.arty_z7 [CONFIG] [TOOLCHAIN]      as `vdla synth --board arty-z7-20`

Clock: FCLK_CLK0 of the processing system, 100 MHz (1 GHz of its I/O PLL by 10). Memory: the
processor's DRAM through S_AXI_HP0; 128 MiB is what PYNQ's image for the PYNQ-Z1, which also starts
here, keeps to be allocated in one piece. Host: the processor itself; the overlay gives it the
registers as a UIO device. LEDs LD0 to LD3 show RUNNING, DONE, FAULT, STOPPING.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from vdla.boards import zynq
from vdla.boards.parts import XC7Z020
from vdla.boards.zynq import ddr3_memory, make_board, make_top

if TYPE_CHECKING:
    from amaranth.vendor import XilinxPlatform

BOARD = make_board("arty-z7-20", "Digilent Arty Z7-20", XC7Z020, ddr3_memory())
Top = partial(make_top, BOARD)
memory_of = partial(zynq.memory_of, BOARD)


def platform(toolchain: str = "Vivado") -> XilinxPlatform:
    """Amaranth's platform."""
    from amaranth_boards.arty_z7 import ArtyZ720Platform

    return ArtyZ720Platform(toolchain=toolchain)


if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
