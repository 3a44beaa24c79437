"""Colorlight i9 v7.2 with an ECP5-45F: SDRAM, and a serial line on its extension board.

    python -m vdla.boards.colorlight_i9 [CONFIG]      as `vdla synth --board colorlight-i9`

Clock: 25 MHz, of which a PLL makes the config's ``clock_mhz``. Memory: an SDRAM of 8 MiB, 32 bits
wide, whose chip select, clock enable and masks are tied. Pins are those that wuxx documents
(github.com/wuxx/Colorlight-FPGA-Projects); the serial line goes to the extension board's DAPLink.
"""

from __future__ import annotations

import sys
from functools import partial

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import LatticePlatform
from amaranth_boards.resources import LEDResources, SDRAMResource, UARTResource

from vdla.boards.ecp5_pll import find_pll
from vdla.boards.parts import LFE5U_45F
from vdla.boards.soc.sdram import EM638325
from vdla.boards.top import Top as AnyTop
from vdla.boards.wiring import Wiring

OSCILLATOR_MHZ = 25
MULTIPLIER_BITS = 18  # of a MULT18X18D
LEVELS = Attrs(IO_TYPE="LVCMOS33")


class Platform(LatticePlatform):
    """Oscillator, LED, serial line and SDRAM; the clock comes from the PLL."""

    device, package, speed = LFE5U_45F.device, "BG381", LFE5U_45F.speed
    default_clk = None
    multiplier_bits = MULTIPLIER_BITS  # GEMM asks for it
    connectors = ()
    resources = (
        Resource("clk25", 0, Pins("P3", dir="i"), Clock(OSCILLATOR_MHZ * 1e6), LEVELS),
        *LEDResources(pins="L2", invert=True, attrs=LEVELS),
        UARTResource(0, rx="H18", tx="J17", attrs=LEVELS),
        SDRAMResource(
            0,
            clk="B9",
            ras_n="B10",
            cas_n="A9",
            we_n="A10",
            ba="B11 C8",
            a="B13 C14 A16 A17 B16 B15 A14 A13 A12 A11 B12",
            dq=(
                "D15 E14 E13 D12 E12 D11 C10 B17 B8 A8 C7 A7 A6 B6 A5 B5 "
                "D5 C5 D6 C6 E7 D7 E8 D8 E9 D9 E11 C11 C12 D13 D14 C15"
            ),
            attrs=Attrs(PULLMODE="NONE", DRIVE="4", SLEWRATE="FAST", IO_TYPE="LVCMOS33"),
        ),
    )


WIRING = Wiring(
    "colorlight-i9",
    EM638325,
    oscillator="clk25",
    find_pll=partial(find_pll, OSCILLATOR_MHZ),
    platform=Platform,
    clock_out=3.5,
    data_out=(2.5, 4.5),
    data_in=(0.5, 2.5),
)
CHIP, clocks_of, memory_of = WIRING.chip, WIRING.clocks_of, WIRING.memory_of
BOARD = WIRING.make_board("Colorlight i9 v7.2", LFE5U_45F, "colorlight")
Top = partial(AnyTop, WIRING)
platform = Platform


if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
