"""The design of a board whose FPGA has an SDRAM and a serial line at its pins."""

from __future__ import annotations

from typing import Any

from amaranth import Cat, ClockDomain, ClockSignal, Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.lib.cdc import ResetSynchronizer

from vdla.boards.soc import leds
from vdla.boards.soc.sdram import FAST
from vdla.boards.soc.soc import Soc
from vdla.boards.wiring import Nets, Wiring
from vdla.isa.config import Config


class Top(Elaboratable):
    """The SoC, its clocks and its pads, as a board is wired."""

    def __init__(self, wiring: Wiring, config: Config) -> None:
        self.wiring, self.config = wiring, config

    def elaborate(self, platform: Any) -> Module:
        """The clocks, the SoC, and the pads of serial line, LEDs and SDRAM."""
        m = Module()
        self.clocks = clocks = self.wiring.clocks_of(self.config)
        self._clocks(m, platform)
        m.submodules.soc = soc = Soc(self.config, self.wiring.chip, clocks.hz, pads=clocks.pads)
        uart = platform.request("uart", dir="-")
        m.submodules.rx = rx = io.Buffer("i", uart.rx)
        m.submodules.tx = tx = io.Buffer("o", uart.tx)
        m.d.comb += [soc.rx.eq(rx.i), tx.o.eq(soc.tx)]
        leds.show(m, platform, soc.leds)
        self._memory(m, platform, soc)
        return m

    def _clocks(self, m: Module, platform: Any) -> None:
        """The oscillator, the PLL, and the domains ``sync``, ``sdram``, at twice the core's clock
        ``fast``, and ``pads``, which is ``sync`` or ``fast`` without a reset."""
        clocks, pin = self.clocks, platform.request(self.wiring.oscillator, dir="-")
        m.submodules.oscillator = oscillator = io.Buffer("i", pin)
        m.domains.sync = ClockDomain("sync")
        m.domains.sdram = ClockDomain("sdram", reset_less=True)
        names = ("locked", "core_clock", "late_clock", "fast_clock")
        nets = Nets(oscillator.i, *(Signal(name=name) for name in names))
        platform.add_clock_constraint(nets.core, clocks.hz)
        m.submodules.pll = clocks.pll.instance(clocks, nets)
        m.d.comb += [ClockSignal("sync").eq(nets.core), ClockSignal("sdram").eq(nets.late)]
        if clocks.pads.ratio > 1:
            platform.add_clock_constraint(nets.fast, clocks.sdram_hz)
            m.domains.fast = ClockDomain(FAST, reset_less=True)
            m.d.comb += ClockSignal(FAST).eq(nets.fast)
        m.domains.pads = ClockDomain("pads", reset_less=True)
        m.d.comb += ClockSignal("pads").eq(nets.core if clocks.pads.ratio == 1 else nets.fast)
        m.submodules.reset = ResetSynchronizer(~nets.locked)

    def _memory(self, m: Module, platform: Any, soc: Soc) -> None:
        """The SDRAM's pads; what a board ties to a level has none. Their registers have no reset,
        or they would show a command, MODE, as long as there is one."""
        ports = platform.request("sdram", dir="-")
        pins, domain = soc.sdram, "pads"
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
            if not hasattr(ports, name):
                continue
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
