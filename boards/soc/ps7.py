"""The processing system of a Zynq-7000: its clock, its reset, two of its ports, an interrupt.

Pins and ports are those of UG585 (chapters 2, 5 and 7). The primitive is used as it is: DDR, MIO
and the PS's own clock are on pins of their own, set up by the first boot loader, which has run when
a bitstream is loaded under Linux. Inputs that could ask something of the PS are held low; the rest
are left to the primitive, which takes an open input for a zero.

1. FCLK_CLK0 through a global buffer clocks everything; FCLK_RESETN0 comes without regard to it.
2. M_AXI_GP0, AXI3 with 12-bit IDs, reaches the registers.
3. S_AXI_HP0, AXI3 of 64 or 32 bits, is the core's memory: bursts of at most 16 beats.
4. IRQF2P[0] is the interrupt: number 61 of the GIC.
"""

from __future__ import annotations

from typing import Any

from amaranth import Module

from vdla.boards.soc import lite
from vdla.boards.soc.primitive import Axi, Pins, ProcessingSystem
from vdla.isa.config import Config

GP0 = Axi("MAXIGP0", address=32, data=32, id=12, axi3=True, size=2)
HP0 = Axi("SAXIHP0", address=32, data=64, id=6, axi3=True, size=2)
REGISTERS = lite.port(GP0.address, GP0.data, GP0.id, GP0.length)
INTERRUPTS = 20
MANAGERS = ("MAXIGP1",)
SUBORDINATES = ("SAXIGP0", "SAXIGP1", "SAXIACP", "SAXIHP1", "SAXIHP2", "SAXIHP3")
QUIET = {  # inputs that could ask something of the PS, by their width
    **{f"DMA{channel}{signal}": 1 for channel in range(4) for signal in ("DRVALID", "DAREADY")},
    "DDRARB": 4,
    "EMIOSRAMINTIN": 1,
    "EVENTEVENTI": 1,
    "FCLKCLKTRIGN": 4,
    "FPGAIDLEN": 1,
    "FTMDTRACEINVALID": 1,
    "FTMTF2PTRIG": 4,
    "FTMTP2FTRIGACK": 4,
    "SAXIHP0RDISSUECAP1EN": 1,
    "SAXIHP0WRISSUECAP1EN": 1,
}


class Ps7(ProcessingSystem):
    """The primitive PS7."""

    def __init__(self, config: Config, clock_hz: float) -> None:
        super().__init__(config, clock_hz, REGISTERS)

    def elaborate(self, platform: Any) -> Module:
        """An instance of PS7 with a clock, a reset, GP0, HP0 and an interrupt; no more is used."""
        m = Module()
        pins = Pins(m)
        clock = pins.take_low("FCLKCLK", "fclk0", 4)
        m.d.comb += self.reset_n.eq(pins.take("FCLKRESETN", 4)[0])
        self._buffer(m, platform, clock, "BUFG")
        pins.give("MAXIGP0ACLK", self.clock)
        pins.give("SAXIHP0ACLK", self.clock)
        pins.from_manager(GP0, self.registers)
        pins.to_subordinate(HP0, self.memory)
        pins.give("IRQF2P", self.irq, INTERRUPTS)
        pins.silence(MANAGERS, SUBORDINATES, QUIET)
        m.submodules.ps7 = pins.instance("PS7")
        return m
