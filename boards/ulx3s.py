"""ULX3S with an ECP5-85F: SDRAM, FTDI serial, and an open toolchain from end to end.

    python -m vdla.boards.ulx3s [CONFIG]      makes the bitstream, as `vdla synth --board ulx3s`

25 MHz → PLL → ``clock_mhz`` of the config for the core; the SDRAM's clock, as fast or, with
``memory.banks.clock_ratio`` = 2, twice as fast, for the registers at its pads; and that again so
much later for its clock pin that the least margin of ``phase_margins`` is largest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from amaranth import Cat, ClockDomain, ClockSignal, Elaboratable, Instance, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer
from amaranth_boards.ulx3s import ULX3S_85F_Platform

from vdla.boards.board import Board, BoardError
from vdla.boards.ecp5_pll import EIGHTHS, Pll, find_pll, output, parameters
from vdla.boards.parts import LFE5U_85F
from vdla.boards.soc import leds
from vdla.boards.soc.sdram import AS4C16M16SA, FAST, Chip, Pads, memory
from vdla.boards.soc.sdram.numbers import words_of
from vdla.boards.soc.sdram.pads import check_pins
from vdla.boards.soc.soc import Soc
from vdla.boards.soc.uart import divisor_of
from vdla.isa.config import Config, load_config
from vdla.isa.memory import Memory

OSCILLATOR_MHZ = 25
MULTIPLIER_BITS = 18  # of a MULT18X18D
CLOCK_OUT, DATA_OUT, DATA_IN = 3.5, (2.5, 4.5), (0.5, 2.5)  # ns: pads and board, least and most
ENOUGH = 0.5  # ns: a margin for which no word is taken a clock later, nor an eighth of a VCO period
MOST_LATE = 1  # clocks that a word may be taken later

CHIP = AS4C16M16SA
CONFIG = "ulx3s"


@dataclass(frozen=True)
class Clocks:
    """The core's clock, the PLL that makes it, and the SDRAM's: ``pads.ratio`` times as fast, and
    ``late`` eighths of a VCO period later at its pin."""

    hz: float
    pll: Pll
    pads: Pads
    late: int

    @property
    def sdram_hz(self) -> float:
        """The SDRAM's clock."""
        return self.hz * self.pads.ratio

    @property
    def sdram_divider(self) -> int:
        """VCO periods of the SDRAM's clock."""
        return self.pll.divider // self.pads.ratio


def clocks_of(config: Config) -> Clocks:
    """The clocks of a config's design, with the phase of the SDRAM's that leaves most to spare.

    Raises:
        BoardError: the chip, the PLL or the serial line can't have the config's clock, or no phase
            of the SDRAM's leaves anything.
    """
    banks = config.memory.banks
    ratio = banks.clock_ratio if banks else 1
    hz = config.clock_mhz * 1e6
    try:
        words_of(CHIP, config.port_bytes, ratio)
        CHIP.cas(hz * ratio)
        pll = find_pll(OSCILLATOR_MHZ, config.clock_mhz, ratio)
        divisor_of(hz)
    except (BoardError, ValueError) as error:
        raise BoardError(f"config {config.name} on ulx3s: {error}") from None
    best = max(_phases(hz, pll, ratio), key=_worth)
    if (least := _least(best)) <= 0:
        raise BoardError(
            f"config {config.name} on ulx3s: expected a clock at which the SDRAM's words can be "
            f"taken, found {config.clock_mhz} MHz, with {-least:.2f} ns too few"
        )
    return best


def _phases(hz: float, pll: Pll, ratio: int) -> Iterator[Clocks]:
    """The SDRAM's clock at every phase, with its words taken in time and later."""
    for late_words in range(MOST_LATE + 1):
        for late in range(pll.divider // ratio * EIGHTHS):
            yield Clocks(hz, pll, Pads(ratio, late_words), late)


def _least(clocks: Clocks) -> float:
    """The least margin."""
    return min(phase_margins(clocks).values())


def _worth(clocks: Clocks) -> tuple[bool, int, float]:
    """Whole VCO periods that leave enough go first, of these the words that come soonest."""
    least = _least(clocks)
    if clocks.late % EIGHTHS == 0 and least >= ENOUGH:
        return True, -clocks.pads.late, least
    return False, 0, least


def phase_margins(clocks: Clocks, chip: Chip = CHIP) -> dict[str, float]:
    """Nanoseconds to spare between the clock of the pads' registers and the SDRAM's.

    ``setup`` and ``hold`` of what the SDRAM samples; ``read`` and ``read_hold`` of what the pads
    sample: the word of one edge of the SDRAM's clock, ``pads.late`` clocks after the clock in which
    that edge lies.
    """
    period, late = 1e9 / clocks.sdram_hz, clocks.pads.late
    edge = clocks.late / EIGHTHS * 1e3 / float(clocks.pll.vco_mhz) + CLOCK_OUT  # at the chip
    access = chip.access[chip.cas(clocks.sdram_hz)]
    return {
        "setup": edge - DATA_OUT[1] - chip.setup,
        "hold": DATA_OUT[0] + period - edge - chip.keep,
        "read": (1 + late) * period - edge - access - DATA_IN[1],
        "read_hold": edge + chip.hold + DATA_IN[0] - late * period,
    }


def memory_of(config: Config) -> Memory:
    """Memory behind the port of a config's core: the SDRAM's controller and its chip, at the clocks
    that the config asks for.

    Raises:
        BoardError: the chip can't make the config's beats or have its clock, or isn't what the
            board's pins are for.
    """
    check_pins("ulx3s", platform(), CHIP)
    clocks = clocks_of(config)
    return memory(CHIP, clocks.hz, config.port_bytes, pads=clocks.pads)


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
    clock_hz=clocks_of(load_config(CONFIG)).hz,
    memory_bytes=AS4C16M16SA.nbytes,
    transport="serial",
    toolchains=LFE5U_85F.toolchains,
    available=LFE5U_85F.available,
    memory=memory_of(load_config(CONFIG)),
)


class Top(Elaboratable):
    """The SoC, its clocks and its pads."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def elaborate(self, platform: Any) -> Module:
        """The clocks, the SoC, and the pads of serial line, LEDs and SDRAM."""
        m = Module()
        self.clocks = clocks = clocks_of(self.config)
        self._clocks(m, platform)
        m.submodules.soc = soc = Soc(self.config, CHIP, clocks.hz, pads=clocks.pads)
        uart = platform.request("uart", dir={"rx": "-", "tx": "-", "rts": "-", "dtr": "-"})
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.d.comb += [soc.rx.eq(rx.i), tx.o.eq(soc.tx)]
        leds.show(m, platform, soc.leds)
        self._memory(m, platform, soc)
        return m

    def _clocks(self, m: Module, platform: Any) -> None:
        """The oscillator, the PLL, and the domains ``sync``, ``sdram`` and, at twice the core's
        clock, ``fast``."""
        m.submodules.oscillator = oscillator = io.Buffer("i", platform.request("clk25", dir="-"))
        m.domains.sync = ClockDomain("sync")
        m.domains.sdram = ClockDomain("sdram", reset_less=True)
        clocks, divider = self.clocks, self.clocks.sdram_divider
        names = ("locked", "core_clock", "late_clock", "fast_clock")
        locked, core, late, fast = (Signal(name=name) for name in names)
        platform.add_clock_constraint(core, clocks.hz)
        m.submodules.pll = Instance(
            "EHXPLLL",
            **parameters(clocks.pll),
            **output("CLKOS", divider, clocks.late),
            **(output("CLKOS2", divider) if clocks.pads.ratio > 1 else {}),
            a_FREQUENCY_PIN_CLKI=str(float(OSCILLATOR_MHZ)),
            a_FREQUENCY_PIN_CLKOP=str(clocks.hz / 1e6),
            a_FREQUENCY_PIN_CLKOS=str(clocks.sdram_hz / 1e6),
            i_CLKI=oscillator.i,
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
            **({"o_CLKOS2": fast} if clocks.pads.ratio > 1 else {}),
            o_LOCK=locked,
        )
        m.d.comb += [ClockSignal("sync").eq(core), ClockSignal("sdram").eq(late)]
        if clocks.pads.ratio > 1:
            platform.add_clock_constraint(fast, clocks.sdram_hz)
            m.domains.fast = ClockDomain(FAST, reset_less=True)
            m.d.comb += ClockSignal(FAST).eq(fast)
        m.submodules.reset = ResetSynchronizer(~locked)

    def _memory(self, m: Module, platform: Any, soc: Soc) -> None:
        ports = platform.request("sdram", dir="-")
        pins, domain = soc.sdram, soc.sdram_domain
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
            m.submodules[f"sdram_{name}"] = pad = io.FFBuffer(
                "o", getattr(ports, name), o_domain=domain
            )
            m.d.comb += pad.o.eq(value)
        m.submodules.sdram_dq = data = io.FFBuffer("io", ports.dq, i_domain=domain, o_domain=domain)
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
