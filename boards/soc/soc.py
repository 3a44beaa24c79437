"""A board without a processor: core, SDRAM and serial link on one clock, or the SDRAM at twice it.

    serial line ─ receiver, transmitter ─ bridge ─┬─ registers ─ core
                                                  └─ shared memory ─ controller ─ SDRAM
                                          core's AXI4 ─┘

LEDs, from 0: a slow blink, memory set up, RUNNING, DONE, FAULT, STOPPING, a byte received, sent.
"""

from __future__ import annotations

from amaranth import Cat, Module, Signal
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from vdla.boards.soc.axi import AxiMemory
from vdla.boards.soc.bridge import Bridge
from vdla.boards.soc.memory import Shared
from vdla.boards.soc.sdram import FAST, ONE_CLOCK, Chip, Controller, HalfRate, Pads, pins
from vdla.boards.soc.uart import Receiver, Transmitter, divisor_of
from vdla.hw.core import Core
from vdla.hw.csr import ADDRESS_BITS
from vdla.hw.interfaces import axi_lite
from vdla.isa.config import Config
from vdla.isa.registers import register
from vdla.isa.ring import numbered
from vdla.runtime.board.link import BAUD

LEDS = 8
SHOWN = 1 << 20  # clocks for which a byte lights its LED


class Soc(Component):
    """``sdram`` goes to the pads' registers (``sdram/pads.py``) in the clock domain
    ``sdram_domain``. The ``trace`` ports are the core's; ``ready`` says that the memory has been
    set up.

    ``pads``: the ratio of the SDRAM's clock to this one's, and how late its words are. ``direct``:
    the core's registers are at the port ``registers``, and the serial link reaches the memory
    alone. ``requests``: how many the memory's controller works on at once.
    """

    def __init__(
        self,
        config: Config,
        chip: Chip,
        clock_hz: float,
        baud: int = BAUD,
        *,
        pads: Pads = ONE_CLOCK,
        direct: bool = False,
        requests: int = 2,
    ) -> None:
        self.config, self.chip, self.clock_hz = config, chip, clock_hz
        self.divisor = divisor_of(clock_hz, baud)
        self.direct, self.requests, self.pads = direct, requests, pads
        self.sdram_domain = "sync" if pads.ratio == 1 else FAST
        engines = len(numbered(config))
        super().__init__(
            {
                **({"registers": In(axi_lite(ADDRESS_BITS))} if direct else {}),
                "irq": Out(1),
                "ready": Out(1),
                "trace_running": Out(1),
                "trace_start": Out(engines),
                "trace_finish": Out(engines),
                "rx": In(1, init=1),
                "tx": Out(1, init=1),
                "leds": Out(LEDS),
                "status": Out(len(register("STATUS").bits)),
                "sdram": Out(pins(chip)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Core and bridge in front of one SDRAM; the bridge also drives the core's registers."""
        m = Module()
        config = self.config
        m.submodules.core = core = Core(config)
        m.submodules.controller = controller = Controller(
            self.chip,
            self.clock_hz,
            config.port_bytes,
            tag_bits=2,
            requests=self.requests,
            pads=self.pads,
        )
        at_bits = controller.at_bits
        m.submodules.axi = axi = AxiMemory(config, at_bits)
        m.submodules.shared = shared = Shared(at_bits, 8 * config.port_bytes, tag_bits=1)
        m.submodules.bridge = bridge = Bridge(
            self.clock_hz, config.port_bytes, at_bits, ADDRESS_BITS
        )
        m.submodules.receiver = receiver = Receiver(self.divisor)
        m.submodules.transmitter = transmitter = Transmitter(self.divisor)
        ran = Signal()  # in the last cycle
        m.d.sync += ran.eq(core.trace_running)
        for part in (axi, controller):
            m.d.comb += part.begins.eq(core.trace_running & ~ran)
        connect(m, core.bus, axi.bus)
        connect(m, axi.memory, shared.first)
        connect(m, bridge.memory, shared.second)
        connect(m, shared.memory, controller.memory)
        if self.direct:
            connect(m, flipped(self.registers), core.registers)
        else:
            connect(m, bridge.registers, core.registers)
        self._join_pads(m, controller)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            bridge.data.eq(receiver.data),
            bridge.valid.eq(receiver.valid),
            transmitter.data.eq(bridge.out_data),
            transmitter.valid.eq(bridge.out_valid),
            bridge.out_ready.eq(transmitter.ready),
            self.tx.eq(transmitter.tx),
            self.status.eq(core.status),
            self.irq.eq(core.irq),
            self.ready.eq(controller.ready),
            self.trace_running.eq(core.trace_running),
            self.trace_start.eq(core.trace_start),
            self.trace_finish.eq(core.trace_finish),
        ]
        blink = Signal(range(int(self.clock_hz)))
        m.d.sync += blink.eq(blink + 1)
        m.d.comb += self.leds.eq(
            Cat(
                blink[-1],
                controller.ready,
                core.status,
                self._seen(m, receiver.valid),
                self._seen(m, ~transmitter.ready),
            )
        )
        return m

    def _join_pads(self, m: Module, controller: Controller) -> None:
        """Leads the controller's signals to the pads' registers."""
        if self.pads.ratio == 1:
            connect(m, controller.pins, flipped(self.sdram))
            return
        cas = self.chip.cas(self.pads.ratio * self.clock_hz)
        m.submodules.half_rate = half_rate = HalfRate(self.chip, cas, self.pads)
        connect(m, controller.pins, half_rate.inner)
        connect(m, half_rate.outer, flipped(self.sdram))

    @staticmethod
    def _seen(m: Module, event: Signal) -> Signal:
        """High for a while after an event."""
        left = Signal(range(SHOWN))
        with m.If(event):
            m.d.sync += left.eq(SHOWN - 1)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        return left != 0
