"""ULX3S with an ECP5-85F: SDRAM, FTDI serial, and an open toolchain from end to end.

    python -m vdla.boards.ulx3s [CONFIG]      makes the bitstream, as `vdla synth --board ulx3s`

25 MHz → PLL → 60 MHz for everything, and the same again SDRAM_LATE of a period later for the
SDRAM's clock pin. That phase leaves every margin of ``phase_margins`` positive.
"""

from __future__ import annotations

import sys
from typing import Any

from amaranth import Cat, ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer
from amaranth_boards.ulx3s import ULX3S_85F_Platform

from vdla.boards.board import Board, BoardError
from vdla.boards.parts import LFE5U_85F
from vdla.boards.soc import leds
from vdla.boards.soc.sdram import AS4C16M16SA, Chip, memory
from vdla.boards.soc.sdram.pads import check_pins
from vdla.boards.soc.soc import Soc
from vdla.isa.config import Config, load_config
from vdla.isa.memory import Memory

OSCILLATOR_HZ = 25e6
DIVIDE, MULTIPLY, VCO_PER_CLOCK = 5, 12, 10  # 25 MHz / 5 × 12 = 60 MHz; the VCO runs at 600 MHz
SDRAM_LATE = 2  # VCO periods from the core's edge to the SDRAM's
CLOCK_HZ = OSCILLATOR_HZ / DIVIDE * MULTIPLY
MULTIPLIER_BITS = 18  # of a MULT18X18D
CLOCK_OUT, DATA_OUT, DATA_IN = 3.5, (2.5, 4.5), (0.5, 2.5)  # ns: pads and board, least and most

CHIP = AS4C16M16SA
CONFIG = "ulx3s"


def memory_of(config: Config) -> Memory:
    """Memory behind the port of a config's core: the SDRAM's controller and its chip.

    Raises:
        BoardError: the chip can't make the config's beats, or isn't what the board's pins are for.
    """
    check_pins("ulx3s", platform(), CHIP)
    try:
        return memory(CHIP, CLOCK_HZ, config.port_bytes)
    except BoardError as error:
        raise BoardError(f"config {config.name} on ulx3s: {error}") from None


def platform() -> ULX3S_85F_Platform:
    """Amaranth's platform; the clock comes from the PLL, so none is made by default."""
    board = ULX3S_85F_Platform()
    board.default_clk = None
    board.multiplier_bits = MULTIPLIER_BITS  # GEMM asks for it
    return board


BOARD = Board(
    name="ulx3s",
    title="Radiona ULX3S-85F",
    device=LFE5U_85F.name,
    config=CONFIG,
    clock_hz=CLOCK_HZ,
    memory_bytes=AS4C16M16SA.nbytes,
    transport="serial",
    toolchains=LFE5U_85F.toolchains,
    available=LFE5U_85F.available,
    memory=memory_of(load_config(CONFIG)),
)


def phase_margins(chip: Chip = CHIP, late: int = SDRAM_LATE) -> dict[str, float]:
    """Nanoseconds to spare between the core's clock and the SDRAM's, ``late`` VCO periods later.

    ``setup`` and ``hold`` of what the SDRAM samples, ``read`` and ``read_hold`` of what the core
    samples one clock and some after the SDRAM's edge.
    """
    period = 1e9 / CLOCK_HZ
    edge = late * period / VCO_PER_CLOCK + CLOCK_OUT  # at the chip, from the core's edge
    return {
        "setup": edge - DATA_OUT[1] - chip.setup,
        "hold": DATA_OUT[0] + period - edge - chip.keep,
        "read": period - edge - chip.access - DATA_IN[1],
        "read_hold": edge + chip.hold + DATA_IN[0],
    }


class Top(Elaboratable):
    """The SoC, its clocks and its pads."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def elaborate(self, platform: Any) -> Module:
        """The clocks, the SoC, and the pads of serial line, LEDs and SDRAM."""
        m = Module()
        self._clocks(m, platform)
        m.submodules.soc = soc = Soc(self.config, CHIP, CLOCK_HZ)
        uart = platform.request("uart", dir={"rx": "-", "tx": "-", "rts": "-", "dtr": "-"})
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.d.comb += [soc.rx.eq(rx.i), tx.o.eq(soc.tx)]
        leds.show(m, platform, soc.leds)
        self._memory(m, platform, soc)
        return m

    def _clocks(self, m: Module, platform: Any) -> None:
        m.submodules.oscillator = oscillator = io.Buffer("i", platform.request("clk25", dir="-"))
        m.domains.sync = ClockDomain("sync")
        m.domains.sdram = ClockDomain("sdram", reset_less=True)
        locked, core, late = Signal(), Signal(), Signal()
        platform.add_clock_constraint(core, CLOCK_HZ)
        m.submodules.pll = Instance(  # Lattice FPGA-TN-02200, sysCLOCK PLL
            "EHXPLLL",
            p_CLKI_DIV=DIVIDE,
            p_CLKFB_DIV=MULTIPLY,
            p_FEEDBK_PATH="CLKOP",
            p_CLKOP_ENABLE="ENABLED",
            p_CLKOP_DIV=VCO_PER_CLOCK,
            p_CLKOP_CPHASE=VCO_PER_CLOCK - 1,
            p_CLKOP_FPHASE=0,
            p_CLKOS_ENABLE="ENABLED",
            p_CLKOS_DIV=VCO_PER_CLOCK,
            p_CLKOS_CPHASE=VCO_PER_CLOCK - 1 + SDRAM_LATE,
            p_CLKOS_FPHASE=0,
            p_PLLRST_ENA="DISABLED",
            p_INTFB_WAKE="DISABLED",
            p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED",
            a_FREQUENCY_PIN_CLKI=str(OSCILLATOR_HZ / 1e6),
            a_FREQUENCY_PIN_CLKOP=str(CLOCK_HZ / 1e6),
            a_FREQUENCY_PIN_CLKOS=str(CLOCK_HZ / 1e6),
            a_ICP_CURRENT="12",
            a_LPF_RESISTOR="8",
            i_CLKI=oscillator.i,
            i_CLKFB=core,
            i_RST=0,
            i_STDBY=0,
            i_PHASESEL0=0,
            i_PHASESEL1=0,
            i_PHASEDIR=0,
            i_PHASESTEP=0,
            i_PHASELOADREG=0,
            i_PLLWAKESYNC=0,
            i_ENCLKOP=0,
            o_CLKOP=core,
            o_CLKOS=late,
            o_LOCK=locked,
        )
        m.d.comb += [ClockSignal("sync").eq(core), ClockSignal("sdram").eq(late)]
        m.submodules.reset = ResetSynchronizer(~locked)

    def _memory(self, m: Module, platform: Any, soc: Soc) -> None:
        ports = platform.request("sdram", dir="-")
        pins = soc.sdram
        outputs = {  # cs, ras, cas, we are inverted by their pads
            "clk_en": pins.enable,
            "cs": ~pins.command[3],
            "ras": ~pins.command[2],
            "cas": ~pins.command[1],
            "we": ~pins.command[0],
            "ba": pins.bank,
            "a": pins.address,
            "dqm": pins.mask,
        }
        for name, value in outputs.items():
            m.submodules[f"sdram_{name}"] = pad = io.FFBuffer("o", getattr(ports, name))
            m.d.comb += pad.o.eq(value)
        m.submodules.sdram_dq = data = io.FFBuffer("io", ports.dq)
        m.submodules.sdram_clk = clock = io.DDRBuffer("o", ports.clk, o_domain="sdram")
        m.d.comb += [
            data.o.eq(pins.word_out),
            data.oe.eq(pins.drive),
            pins.word_in.eq(data.i),
            Cat(clock.o[0], clock.o[1]).eq(0b01),
        ]


if __name__ == "__main__":
    from vdla.boards.flows import main

    main(BOARD, sys.argv[1:])
