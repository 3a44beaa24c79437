"""A board whose processor shares its memory: the core between two of the processor's ports.

    registers' port ─ bursts to AXI4-Lite ─ core's registers
    memory's port ─ core's AXI4             interrupt, clock and reset likewise

LEDs, where a board has them: the bits of STATUS, from 0: RUNNING, DONE, FAULT, STOPPING.
"""

from __future__ import annotations

from typing import Any

from amaranth import ClockDomain, ClockSignal, Elaboratable, Module
from amaranth.build import Attrs
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import Component, Out, connect
from amaranth.vendor import XilinxPlatform
from amaranth_boards.resources import LEDResources

from vdla.boards.parts import Part, Processor
from vdla.boards.soc import leds
from vdla.boards.soc.lite import ToLite
from vdla.boards.soc.ps7 import Ps7
from vdla.boards.soc.ps8 import Ps8
from vdla.hw.core import Core
from vdla.isa.config import Config
from vdla.isa.registers import register

SYSTEMS = {"PS7": Ps7, "PS8": Ps8}


class System(Component):
    """Processing system and core. ``status`` is STATUS."""

    def __init__(self, config: Config, processor: Processor, clock_hz: float) -> None:
        self.config, self.processor, self.clock_hz = config, processor, clock_hz
        super().__init__({"status": Out(len(register("STATUS").bits))})

    def elaborate(self, platform: Any) -> Module:
        """Core and processing system in the latter's clock, ``ToLite`` before the registers."""
        m = Module()
        kind = SYSTEMS[self.processor.primitive]
        m.submodules.ps = ps = kind(self.config, self.clock_hz)
        m.submodules.core = core = Core(self.config)
        m.submodules.registers = registers = ToLite(
            ps.registers.signature, self.processor.registers
        )
        m.domains.sync = ClockDomain("sync")
        m.submodules.reset = ResetSynchronizer(~ps.reset_n)
        connect(m, ps.registers, registers.bus)
        connect(m, registers.registers, core.registers)
        connect(m, core.bus, ps.memory)
        m.d.comb += [
            ClockSignal("sync").eq(ps.clock),
            ps.irq.eq(core.irq),
            self.status.eq(core.status),
        ]
        return m


class Top(Elaboratable):
    """The system and what LEDs the board has."""

    def __init__(self, config: Config, processor: Processor, clock_hz: float) -> None:
        self.system = System(config, processor, clock_hz)

    def elaborate(self, platform: Any) -> Module:
        """The system, and its status on the board's LEDs."""
        m = Module()
        m.submodules.system = self.system
        leds.show(m, platform, self.system.status)
        return m


def platform(part: Part, led_pins: str, toolchain: str) -> XilinxPlatform:
    """Amaranth's platform of a board that uses nothing but LEDs, at 3.3 V."""
    leds = LEDResources(pins=led_pins, attrs=Attrs(IOSTANDARD="LVCMOS33")) if led_pins else []

    class Platform(XilinxPlatform):
        device, package, speed = part.device, part.package, part.speed
        resources = leds
        connectors = ()

    return Platform(toolchain=toolchain)
