"""TUL PYNQ-Z2: a Zynq XC7Z020 and 512 MiB of DDR3, under PYNQ's Linux.

    python -m vdla.boards.pynq_z2 [CONFIG] [TOOLCHAIN]      as `vdla synth --board pynq-z2`

Clock: FCLK_CLK0 of the processing system, 100 MHz (1 GHz of its I/O PLL by 10). Memory: the
processor's DRAM through S_AXI_HP0, of which PYNQ's image keeps 128 MiB to be allocated in one
piece. Host: the processor itself; the overlay gives it the registers as a UIO device. LEDs LD0 to
LD3 (pins as in TUL's master XDC) show RUNNING, DONE, FAULT, STOPPING.
"""

from __future__ import annotations

import sys
from functools import partial

from vdla.boards import zynq
from vdla.boards.parts import XC7Z020
from vdla.boards.zynq import ddr3_memory, make_board, make_platform, make_top

LEDS = "R14 P14 N16 M14"

BOARD = make_board("pynq-z2", "TUL PYNQ-Z2", XC7Z020, ddr3_memory())
Top = partial(make_top, BOARD)
memory_of = partial(zynq.memory_of, BOARD)
platform = partial(make_platform, XC7Z020, LEDS)

if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
