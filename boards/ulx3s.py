"""ULX3S with an ECP5-85F: SDRAM, FTDI serial, and an open toolchain from end to end.

    python -m vdla.boards.ulx3s [CONFIG]      makes the bitstream, as `vdla synth --board ulx3s`

Clock: 25 MHz, of which a PLL makes the config's ``clock_mhz``. Memory: an SDRAM of 32 MiB, 16 bits
wide; ``wiring.py`` has its clocks.
"""

from __future__ import annotations

import sys
from functools import partial

from amaranth_boards.ulx3s import ULX3S_85F_Platform

from vdla.boards.ecp5_pll import find_pll
from vdla.boards.parts import LFE5U_85F
from vdla.boards.soc.sdram import AS4C16M16SA
from vdla.boards.top import Top as AnyTop
from vdla.boards.wiring import Wiring

OSCILLATOR_MHZ = 25
MULTIPLIER_BITS = 18  # of a MULT18X18D


def platform() -> ULX3S_85F_Platform:
    """Amaranth's platform; the clock comes from the PLL, so none is made by default."""
    board = ULX3S_85F_Platform()
    board.default_clk = None
    board.multiplier_bits = MULTIPLIER_BITS  # GEMM asks for it
    return board


WIRING = Wiring(
    "ulx3s",
    AS4C16M16SA,
    oscillator="clk25",
    find_pll=partial(find_pll, OSCILLATOR_MHZ),
    platform=platform,
    clock_out=3.5,
    data_out=(2.5, 4.5),
    data_in=(0.5, 2.5),
)
CHIP, clocks_of, memory_of = WIRING.chip, WIRING.clocks_of, WIRING.memory_of
BOARD = WIRING.make_board("Radiona ULX3S-85F", LFE5U_85F, "ulx3s")
Top = partial(AnyTop, WIRING)


if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
