"""Avnet Ultra96-V2: a Zynq UltraScale+ XCZU3EG and 2 GiB of LPDDR4, under PYNQ's Linux.

    python -m vdla.boards.ultra96 [CONFIG] [TOOLCHAIN]      as `vdla synth --board ultra96-v2`

Clock: PL_CLK0 of the processing system, 100 MHz. Memory: the processor's DRAM through
S_AXI_HP0_FPD, of which PYNQ's image keeps 128 MiB to be allocated in one piece. Host: the processor
itself; the overlay gives it the registers as a UIO device. The board's user LEDs are the
processor's; the fabric has only those of the radio, which are left alone.
"""

from __future__ import annotations

import sys
from functools import partial

from vdla.boards import zynq
from vdla.boards.parts import XCZU3EG
from vdla.boards.zynq import make_board, make_platform, make_top

BOARD = make_board("ultra96-v2", "Avnet Ultra96-V2", XCZU3EG)
Top = partial(make_top, BOARD)
memory_of = partial(zynq.memory_of, BOARD)
platform = partial(make_platform, XCZU3EG, "")  # no LEDs

if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
