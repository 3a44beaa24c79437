"""Sipeed Tang Nano 20K with a Gowin GW2AR-18: SDRAM in the FPGA's package, serial by a BL616.

    python -m vdla.boards.tang_nano_20k [CONFIG]      as `vdla synth --board tang-nano-20k`

Clock: 27 MHz, of which a PLL makes the config's ``clock_mhz``. Memory: an SDRAM of 8 MiB, 32 bits
wide, on pads that no pin of the package has; apycula's table of what is in packages (``sip_cst``)
says at which places they are.
"""

from __future__ import annotations

import sys
from functools import partial

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform
from amaranth_boards.resources import LEDResources, SDRAMResource, UARTResource

from vdla.boards.gowin_pll import find_pll
from vdla.boards.parts import GW2AR_18
from vdla.boards.soc.sdram import EM638325
from vdla.boards.top import Top as AnyTop
from vdla.boards.wiring import Wiring

OSCILLATOR_MHZ = 27
MULTIPLIER_BITS = 18  # of a MULT18X18
DIE = "GW2A-18C"
LEVELS = Attrs(IO_TYPE="LVCMOS33")


class Platform(GowinPlatform):
    """Oscillator, LEDs, serial line and SDRAM; the clock comes from the PLL."""

    part, family = GW2AR_18.name, "GW2AR-18C"
    default_clk = None
    multiplier_bits = MULTIPLIER_BITS  # GEMM asks for it
    connectors = ()
    resources = (
        Resource("clk27", 0, Pins("4", dir="i"), Clock(OSCILLATOR_MHZ * 1e6), LEVELS),
        *LEDResources(pins="15 16 17 18 19 20", invert=True, attrs=LEVELS),
        UARTResource(0, rx="70", tx="69", attrs=LEVELS),
        SDRAMResource(
            0,
            clk="IOR11B",
            cke="IOL13A",
            cs_n="IOL14B",
            ras_n="IOL13B",
            cas_n="IOL14A",
            we_n="IOL12B",
            dqm="IOL12A IOR11A IOL18A IOR15B",
            ba="IOR13A IOR12A",
            a="IOR14A IOR13B IOR14B IOR15A IOL16B IOL17B IOL16A IOL17A IOL15B IOL15A IOR12B",
            dq=(
                "IOL3A IOL3B IOL8A IOL8B IOL9A IOL9B IOL11A IOL11B "
                "IOR9B IOR9A IOR5B IOR6A IOR5A IOR4B IOR3B IOR3A "
                "IOL39B IOL39A IOL35B IOL35A IOL30B IOL30A IOL20A IOL18B "
                "IOR17A IOR16A IOR16B IOR17B IOR18A IOR18B IOR44A IOR44B"
            ),
            attrs=LEVELS,
        ),
    )


WIRING = Wiring(
    "tang-nano-20k",
    EM638325,
    oscillator="clk27",
    find_pll=partial(find_pll, OSCILLATOR_MHZ),
    platform=Platform,
    clock_out=3.5,
    data_out=(2.5, 7.5),  # registers stand in the fabric, not at the pads
    data_in=(0.5, 5.5),
)
CHIP, clocks_of, memory_of = WIRING.chip, WIRING.clocks_of, WIRING.memory_of
BOARD = WIRING.make_board("Sipeed Tang Nano 20K", GW2AR_18, "nano", loader="tangnano20k")
Top = partial(AnyTop, WIRING)
platform = Platform


if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
