"""Avnet Ultra96-V2: a Zynq UltraScale+ XCZU3EG and 2 GiB of LPDDR4, under PYNQ's Linux.

    python -m vdla.boards.ultra96 [CONFIG] [TOOLCHAIN]      as `vdla synth --board ultra96-v2`

Clock: PL_CLK0 of the processing system, 100 MHz. Memory: the processor's DRAM through
S_AXI_HP0_FPD, of which PYNQ's image keeps 128 MiB to be allocated in one piece. Host: the processor
itself; the overlay gives it the registers as a UIO device. The board's user LEDs are the
processor's; the fabric has only those of the radio, which are left alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from vdla.boards.board import Board
from vdla.boards.zynq import ULTRASCALE, XCZU3EG, Part
from vdla.isa.config import Config

if TYPE_CHECKING:
    from amaranth.vendor import XilinxPlatform

    from vdla.boards.soc import zynq as soc

PART = Part("xczu3eg", "sbva484", "1-i")

BOARD = Board(
    name="ultra96-v2",
    title="Avnet Ultra96-V2",
    device="xczu3eg-sbva484-1-i",
    config="paper",
    clock_hz=100e6,
    memory_bytes=128 << 20,
    reach="axi",
    toolchains=("vivado", "yosys"),
    available=XCZU3EG,
)


def Top(config: Config) -> soc.Top:
    """The board's design."""
    from vdla.boards.soc.zynq import Top

    return Top(config, ULTRASCALE, BOARD.clock_hz)


def platform(toolchain: str = "Vivado") -> XilinxPlatform:
    """Amaranth's platform."""
    from vdla.boards.soc.zynq import platform

    return platform(PART, toolchain=toolchain)


if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
