"""The core: fetch, the ring of engines with their token queues, the scratchpads, the port.

1. The parts connect the units (``units.py``): the ring of engines (``ring.py``), the scratchpads
   (``memories.py``), the memory port (``memory_port.py``), the counters (``causes.py``).
2. The core is IDLE, RUNNING or STOPPING (``control.py``). In IDLE engines, queues and tokens are
   held in reset, and fetch takes over what the registers say.
3. The first fault of a cycle ends the program (``faults.py``).
4. The ``trace`` ports say for a profiler what happens in this cycle: a program runs, each engine
   starts and finishes an instruction (a bit for each, in the order of the engines' numbers).
"""

from __future__ import annotations

from amaranth import Cat, Module, ResetInserter, Signal
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from vdla.hw.core.causes import Causes
from vdla.hw.core.control import Control, State
from vdla.hw.core.faults import Faults
from vdla.hw.core.memories import Memories
from vdla.hw.core.memory_port import connect_memory_port
from vdla.hw.core.ring import Ring
from vdla.hw.core.units import Queues, Units, engine_units
from vdla.hw.counters import Counters
from vdla.hw.csr import ADDRESS_BITS, Csr
from vdla.hw.dma import Dma
from vdla.hw.fetch import Fetch
from vdla.hw.interfaces import axi4, axi_lite
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.registers import IDENTITY, VERSION, register
from vdla.isa.ring import numbered


class Core(Component):
    """``bus`` to memory, ``registers`` from the driver, the interrupt, the trace.

    ``status`` is STATUS, for lamps.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "bus": Out(axi4(config)),
                "registers": In(axi_lite(ADDRESS_BITS)),
                "irq": Out(1),
                "status": Out(len(register("STATUS").bits)),
                "trace_running": Out(1),
                "trace_start": Out(len(numbered(config))),
                "trace_finish": Out(len(numbered(config))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """All units, the engines in a reset while no program runs, and what connects them."""
        m, config = Module(), self.config
        state = Signal(State)
        reset = Signal()
        in_reset = ResetInserter(reset)
        m.d.comb += reset.eq(state == State.IDLE)
        self.units = units = self._units(m, in_reset)
        queues = Ring(m, config, units, in_reset).queues
        Memories(m, config, units)
        connect_memory_port(m, units, self.bus)
        self._connect_registers(m, units)
        Causes(m, config, units, queues)
        self._trace(m, queues, state)
        Control(m, units, state, Faults(m, config, units))
        m.d.comb += self.status.eq(units.csr.status)
        return m

    def _units(self, m: Module, in_reset: ResetInserter) -> Units:
        config = self.config
        m.submodules.csr = csr = Csr(config)
        m.submodules.dma = dma = Dma(config)
        m.submodules.counters = counters = Counters(config)
        m.submodules.fetch = fetch = Fetch(config)
        units = Units(csr, dma, counters, fetch, engine_units(config))
        for engine, unit in units.engines.items():
            m.submodules[engine.name.lower()] = in_reset(unit)
        return units

    def _connect_registers(self, m: Module, units: Units) -> None:
        """The driver's port, the interrupt, and the registers that say which core this is."""
        csr = units.csr
        isa, config = Identity.of(self.config).words
        connect(m, flipped(self.registers), csr.bus)
        m.d.comb += [
            csr.id.eq(IDENTITY),
            csr.version.eq(VERSION),
            csr.isa_hash.eq(isa),
            csr.config_hash.eq(config),
            self.irq.eq(csr.irq),
        ]

    def _trace(self, m: Module, queues: Queues, state: Signal) -> None:
        commands = [queues[engine].command for engine in numbered(self.config)]
        m.d.comb += [
            self.trace_running.eq(state == State.RUNNING),
            self.trace_start.eq(Cat(c.start for c in commands)),
            self.trace_finish.eq(Cat(c.finish for c in commands)),
        ]
