"""The processing system of a Zynq UltraScale+: as ``ps7.py``, for the primitive PS8.

Pins and ports are those of UG1085 (chapters 13 and 35) and UG1087.

1. PL_CLK0 through its buffer clocks everything. Its reset is bit 95 of the EMIO GPIO, which the
   firmware drives for PL_RESETN0.
2. M_AXI_HPM0_FPD (the primitive calls it MAXIGP0), AXI4 of 128 bits, its width after reset, with
   16-bit IDs, reaches the registers.
3. S_AXI_HP0_FPD (SAXIGP2), AXI4, is the core's memory; its register says whether it is 128, 64 or
   32 bits wide, on the lowest lanes, and must agree with the config: the overlay sets it.
4. PL_PS_IRQ0[0] is the interrupt: number 121 of the GIC.
"""

from __future__ import annotations

from typing import Any

from amaranth import Module

from vdla.boards.soc import lite
from vdla.boards.soc.primitive import Axi, Pins, ProcessingSystem
from vdla.isa.config import Config

HPM0 = Axi("MAXIGP0", address=40, data=128, id=16, axi3=False)
HP0 = Axi("SAXIGP2", address=49, data=128, id=6, axi3=False)
REGISTERS = lite.port(HPM0.address, HPM0.data, HPM0.id, HPM0.length)
INTERRUPTS = 8
RESET_GPIO, GPIOS = 95, 96
MANAGERS = ("MAXIGP1", "MAXIGP2")
SUBORDINATES = ("SAXIGP0", "SAXIGP1", "SAXIGP3", "SAXIGP4", "SAXIGP5", "SAXIGP6", "SAXIACP")
QUIET = {  # inputs that could ask something of the PS, by their width
    "DPMAXISMIXEDAUDIOTREADY": 1,
    "DPSAXISAUDIOTVALID": 1,
    "PLPSIRQ1": 8,
    "PLPSAPUGICFIQ": 4,
    "PLPSAPUGICIRQ": 4,
    "PLPSEVENTI": 1,
    "PLPSTRIGGER": 4,
    "PLPSTRIGACK": 4,
    "PLFPGASTOP": 4,
    "PLPMUGPI": 32,
    "PMUERRORFROMPL": 4,
    "PL2ADMACVLD": 8,
    "PL2ADMATACK": 8,
    "PL2GDMACVLD": 8,
    "PL2GDMATACK": 8,
    "RPUEVENTI0": 1,
    "RPUEVENTI1": 1,
    "FTMGPI": 32,
    "SACEFPDARVALID": 1,
    "SACEFPDAWVALID": 1,
    "SACEFPDWVALID": 1,
    "SAXIGP2ARUSER": 1,
    "SAXIGP2AWUSER": 1,
}
ACTIVE_LOW = ("NFIQ0LPDRPU", "NFIQ1LPDRPU", "NIRQ0LPDRPU", "NIRQ1LPDRPU")


class Ps8(ProcessingSystem):
    """The primitive PS8."""

    def __init__(self, config: Config, clock_hz: float) -> None:
        super().__init__(config, clock_hz, REGISTERS)

    def elaborate(self, platform: Any) -> Module:
        """An instance of PS8 with a clock, a reset, HPM0, HP0 and an interrupt; no more is used."""
        m = Module()
        pins = Pins(m)
        clock = pins.take_low("PLCLK", "pl_clk0", 4)
        m.d.comb += self.reset_n.eq(pins.take("EMIOGPIOO", GPIOS)[RESET_GPIO])
        self._buffer(m, platform, clock, "BUFG_PS")
        for pin in ("MAXIGP0ACLK", "SAXIGP2RCLK", "SAXIGP2WCLK"):
            pins.give(pin, self.clock)
        pins.from_manager(HPM0, self.registers)
        pins.to_subordinate(HP0, self.memory)
        pins.give("PLPSIRQ0", self.irq, INTERRUPTS)
        pins.silence(MANAGERS, SUBORDINATES, QUIET)
        for pin in ACTIVE_LOW:
            pins.give(pin, 1)
        m.submodules.ps8 = pins.instance("PS8")
        return m
