"""The core: fetch, the ring of three engines with their token queues, the scratchpads, the port.

States: IDLE, engines, queues and tokens are held in reset and fetch takes over what the registers
say; RUNNING, from cycle 0 of a program; STOPPING, after a fault or a reset: transfers in flight run
to their end, then IDLE.

1. START takes effect in IDLE: the next cycle is cycle 0.
2. In RUNNING the program ends with fetch's ``finished``, or with a fault: the first of the cycle in
   the order fetch, LOAD, COMPUTE, STORE, bus.
3. The ``trace`` ports say for a profiler what happens in this cycle: a program runs, each engine
   starts and finishes an instruction (bit = engine).
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import enum
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from vdla.hw.bursts import PAGE_BITS, PAGES_BITS
from vdla.hw.compute import Compute
from vdla.hw.counters import Counters
from vdla.hw.csr import ADDRESS_BITS, Csr
from vdla.hw.dma import Dma
from vdla.hw.fetch import Fetch
from vdla.hw.interfaces import Cause, Fault, axi4, axi_lite
from vdla.hw.layout import beats, scaled
from vdla.hw.load import Load
from vdla.hw.queue import CommandQueue
from vdla.hw.scratchpad import Scratchpad
from vdla.hw.store import Store
from vdla.hw.tokens import TokenQueue
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.instructions import Engine, instruction_bytes
from vdla.isa.registers import IDENTITY, INDEX_BITS, VERSION, register


class State(enum.Enum, shape=2):
    """What the core does."""

    IDLE = 0
    RUNNING = 1
    STOPPING = 2


class Core(Component):
    """``bus`` to memory, ``registers`` from the driver, the interrupt, the trace; ``status`` is
    STATUS, for lamps."""

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__(
            {
                "bus": Out(axi4(config)),
                "registers": In(axi_lite(ADDRESS_BITS)),
                "irq": Out(1),
                "status": Out(len(register("STATUS").bits)),
                "trace_running": Out(1),
                "trace_start": Out(len(Engine)),
                "trace_finish": Out(len(Engine)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """All units, the engines in a reset while no program runs, and what connects them."""
        m = Module()
        config = self.config
        state = Signal(State)
        reset = Signal()
        in_reset = ResetInserter(reset)
        m.d.comb += reset.eq(state == State.IDLE)

        m.submodules.csr = self.csr = Csr()
        m.submodules.dma = self.dma = Dma(config)
        m.submodules.counters = self.counters = Counters()
        m.submodules.fetch = self.fetch = Fetch(config)
        self.engines = {
            Engine.LOAD: Load(config),
            Engine.COMPUTE: Compute(config),
            Engine.STORE: Store(config),
        }
        for engine, unit in self.engines.items():
            m.submodules[engine.name.lower()] = in_reset(unit)
        self._ring(m, in_reset)
        self._memories(m)
        self._memory_port(m)
        self._identity(m)
        self._observe(m, state)
        self._control(m, state)
        return m

    # What is connected to what ---------------------------------------------------------------

    def _ring(self, m: Module, in_reset: ResetInserter) -> None:
        """Fetch → three command queues → three engines, with a token queue each way between two."""
        fetch = self.fetch
        self.queues = {engine: CommandQueue(self.config) for engine in Engine}
        for engine, queue in self.queues.items():
            m.submodules[f"{engine.name.lower()}_queue"] = in_reset(queue)
            connect(m, queue.command, self.engines[engine].command)
            m.d.comb += [
                queue.word.eq(fetch.word),
                queue.index.eq(fetch.index),
                queue.put.eq(fetch.put[engine]),
                fetch.room[engine].eq(queue.room),
            ]
        m.d.comb += fetch.busy.eq(Cat(q.busy for q in self.queues.values()).any())
        for engine, queue in self.queues.items():
            for side, other, back in (
                ("next", self.queues[engine.next], "prev"),
                ("prev", self.queues[engine.prev], "next"),
            ):
                tokens = TokenQueue(self.config.token_queue)
                m.submodules[f"{engine.name.lower()}_to_{side}"] = in_reset(tokens)
                m.d.comb += [
                    tokens.reserve.eq(getattr(queue, f"reserve_{side}")),
                    tokens.push.eq(getattr(queue, f"push_{side}")),
                    tokens.pop.eq(getattr(other, f"pop_{back}")),
                    getattr(queue, f"slot_{side}").eq(tokens.vacant),
                    getattr(other, f"has_{back}").eq(tokens.available),
                ]

    def _memories(self, m: Module) -> None:
        """LOAD fills all of them, and passes on what COMPUTE writes; STORE reads before COMPUTE."""
        config = self.config
        load, compute, store = (self.engines[e] for e in Engine)
        for name in ("inp", "wgt", "uop"):
            pad = Scratchpad(
                config.depth(name), 8 * config.entry(name), beats(config, name), reads=1
            )
            m.submodules[name] = pad
            connect(m, getattr(load, name), pad.write)
            connect(m, getattr(compute, name), pad.read_0)
        m.submodules.acc = acc = Scratchpad(config.depth("acc"), 8 * config.acc_entry, 1, reads=2)
        connect(m, compute.acc_x, acc.read_0)
        connect(m, compute.acc_write, load.computed)
        connect(m, load.acc, acc.write)
        m.d.comb += [
            load.acc_taken.eq(compute.acc_taken),
            compute.acc_y_taken.eq(store.acc.enable),
            acc.read_1.enable.eq(compute.acc_y.enable | store.acc.enable),
            acc.read_1.address.eq(Mux(store.acc.enable, store.acc.address, compute.acc_y.address)),
            compute.acc_y.data.eq(acc.read_1.data),
            store.acc.data.eq(acc.read_1.data),
        ]

    def _memory_port(self, m: Module) -> None:
        dma, fetch, csr = self.dma, self.fetch, self.csr
        load, _, store = (self.engines[e] for e in Engine)
        connect(m, dma.axi, flipped(self.bus))
        connect(m, fetch.request, dma.fetch)
        connect(m, dma.fetch_data, fetch.data)
        connect(m, load.request, dma.load)
        connect(m, dma.load_data, load.data)
        connect(m, store.write, dma.store)
        pages = Signal(PAGES_BITS)
        size = csr.dram_size[PAGE_BITS:]
        m.d.comb += [
            dma.dram_base.eq(csr.dram_base[PAGE_BITS:]),
            pages.eq(Mux(size == 0, 1 << len(size), size)),
            fetch.dram_pages.eq(pages),
            load.dram_pages.eq(pages),
            store.dram_pages.eq(pages),
            fetch.base.eq(csr.program_base),
            fetch.length.eq(csr.program_length),
        ]

    def _identity(self, m: Module) -> None:
        csr = self.csr
        isa, config = Identity.of(self.config).words
        connect(m, flipped(self.registers), csr.bus)
        m.d.comb += [
            csr.id.eq(IDENTITY),
            csr.version.eq(VERSION),
            csr.isa_hash.eq(isa),
            csr.config_hash.eq(config),
            self.irq.eq(csr.irq),
        ]

    def _observe(self, m: Module, state: Value) -> None:
        """Causes, counters and the trace."""
        counters, fetch, csr = self.counters, self.fetch, self.csr
        for engine, unit in self.engines.items():
            cause = getattr(counters, f"cause_{engine.name.lower()}")
            m.d.comb += cause.eq(
                Mux(
                    unit.activity.idle,
                    Mux(
                        self.queues[engine].command.waiting,
                        Cause.TOKEN,
                        Mux(fetch.dispatched, Cause.DRAIN, Cause.FETCH),
                    ),
                    unit.activity.cause,
                )
            )
            for each in Cause:
                name = f"{engine.name}_{each.name}".lower()
                m.d.comb += getattr(csr, name).eq(getattr(counters, name))
        commands = [self.queues[e].command for e in Engine]
        m.d.comb += [
            csr.cycles_low.eq(counters.cycles[:32]),
            csr.cycles_high.eq(counters.cycles[32:]),
            self.trace_running.eq(state == State.RUNNING),
            self.trace_start.eq(Cat(c.start for c in commands)),
            self.trace_finish.eq(Cat(c.finish for c in commands)),
        ]

    # What the core does ----------------------------------------------------------------------

    def _control(self, m: Module, state: Value) -> None:
        csr, dma, fetch, counters = self.csr, self.dma, self.fetch, self.counters
        done = Signal()
        faulted = Signal()
        ran = Signal()  # in the last cycle
        allowed = Signal()
        awake = Signal()  # not IDLE; with few sinks, for the path of a request
        found = Signal()
        cause, fault_index = self._find_fault(m, allowed, found)
        control, status, events = (
            register(name) for name in ("CONTROL", "STATUS", "INTERRUPT_STATUS")
        )
        start = (csr.control & control.field("START").mask).any()
        reset = (csr.control & control.field("RESET").mask).any()
        m.d.comb += [
            fetch.idle.eq(state == State.IDLE),
            fetch.awake.eq(awake),
            csr.locked.eq(state != State.IDLE),
            dma.stop.eq((state != State.RUNNING) | ~allowed),
            self.engines[Engine.STORE].stop.eq(state != State.RUNNING),
        ]
        ends = {"DONE": Signal(name="ends"), "FAULT": Signal(name="fails")}
        with m.Switch(state):
            with m.Case(State.IDLE), m.If(start & ~reset):
                m.d.comb += counters.clear.eq(1)
                m.d.sync += [state.eq(State.RUNNING), awake.eq(1), done.eq(0), faulted.eq(0)]
                m.d.sync += [csr.fault_cause.eq(Fault.NONE), csr.fault_instruction.eq(0)]
            with m.Case(State.RUNNING):
                m.d.comb += [counters.cycle.eq(1), counters.causes.eq(~found)]
                with m.If(found):
                    m.d.comb += ends["FAULT"].eq(1)
                    m.d.sync += [state.eq(State.STOPPING), faulted.eq(1)]
                    m.d.sync += csr.fault_cause.eq(cause)
                with m.Elif(fetch.finished):
                    m.d.comb += ends["DONE"].eq(1)
                    m.d.sync += [state.eq(State.IDLE), awake.eq(0), done.eq(1)]
                with m.Elif(reset):
                    m.d.sync += state.eq(State.STOPPING)
            with m.Case(State.STOPPING):
                with m.If(ran & faulted):  # a cycle late, before anybody can ask
                    m.d.sync += csr.fault_instruction.eq(self._address(fault_index))
                with m.If(dma.quiet):
                    m.d.sync += [state.eq(State.IDLE), awake.eq(0)]
        with m.If(reset):
            m.d.sync += [done.eq(0), faulted.eq(0)]
        m.d.sync += ran.eq(state == State.RUNNING)
        flags = {
            "RUNNING": state == State.RUNNING,
            "DONE": done,
            "FAULT": faulted,
            "STOPPING": state == State.STOPPING,
        }
        for bits in status.bits:
            m.d.comb += csr.status[bits.low].eq(flags[bits.name])
        m.d.comb += self.status.eq(csr.status)
        for bits in events.bits:  # a cycle later, when the counters have counted the last one
            m.d.sync += csr.interrupt_status[bits.low].eq(ends[bits.name])

    def _find_fault(self, m: Module, allowed: Value, found: Value) -> tuple[Value, Value]:
        """The first fault of this cycle: its cause, and a cycle later the number of its
        instruction. ``allowed``: the program is for this core."""
        csr, dma, fetch = self.csr, self.dma, self.fetch
        load, compute, store = (self.engines[e] for e in Engine)
        isa_fits, config_fits = Signal(), Signal()
        of_isa = csr.program_isa == csr.isa_hash
        of_config = csr.program_config == csr.config_hash
        # Registers don't change from START on, so one cycle earlier is as good.
        m.d.sync += [
            isa_fits.eq(of_isa),
            config_fits.eq(of_config),
            allowed.eq(of_isa & of_config & (csr.program_length != 0)),
        ]
        refused = Mux(config_fits, Fault.ILLEGAL, Fault.PROGRAM_CONFIG)
        refused = Mux(isa_fits, refused, Fault.PROGRAM_ISA)
        units = (
            fetch.fault,
            load.request_fault,
            load.fault,
            compute.fault,
            store.fault,
            store.burst_fault,
        )
        of_load, of_answer = dma.read_error & dma.error_load, dma.write_error & store.waits
        in_order = [
            (~allowed, refused, None),
            *((unit.valid, unit.cause, unit.index) for unit in units),
            (of_load, Fault.BUS, load.fault.index),
            (dma.read_error, Fault.BUS, fetch.fault.index),
            (of_answer, Fault.BUS, store.oldest),
            (dma.write_error, Fault.BUS, store.burst_fault.index),
        ]
        cause = Signal(Fault, name="found_cause")
        for valid, its_cause, _ in reversed(in_order):
            with m.If(valid):
                m.d.comb += [found.eq(1), cause.eq(its_cause)]
        # Each number is kept if it is the one, else zero: an OR is smaller than a choice of seven.
        numbers = {id(index): index for _, _, index in in_order if index is not None}
        kept: Value = Const(0, INDEX_BITS)
        for number in numbers.values():
            other, one = Signal(init=1), Signal.like(number, reset_less=True)
            for valid, _, index in reversed(in_order):
                with m.If(valid):
                    m.d.comb += other.eq(index is not number)
            m.d.sync += one.eq(Mux(other, 0, number))
            kept |= one
        return cause, kept

    def _address(self, index: Value) -> Value:
        """Byte address of an instruction of the stream."""
        return self.csr.program_base + scaled(index, instruction_bytes(self.config))
