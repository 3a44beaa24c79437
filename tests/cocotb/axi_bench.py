"""The core between cocotbext-axi's peers: a memory, slow and faulty at will, and a driver."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, replace
from random import Random

import cocotb
import numpy as np
from axi_monitor import Monitor
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import (
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiResp,
    AxiSlaveRead,
    AxiSlaveWrite,
)

from vdla.analysis.case import Case
from vdla.analysis.machines import simulate
from vdla.isa.asm import assemble
from vdla.isa.config import PAGE_BYTES, load_config
from vdla.isa.instructions import Finish, Load, Mem, Store
from vdla.isa.program import Program
from vdla.isa.registers import Cause, Fault, counter, register
from vdla.isa.ring import Engine, numbered
from vdla.sim.machine import warm_up

CONFIG = load_config("tiny")
warm_up(CONFIG)
PERIOD = 10  # ns
PATIENCE = 200_000  # cycles that any program ends in
RUNNING, DONE, FAULT, STOPPING = (bits.mask for bits in register("STATUS").bits)
START, RESET = (bits.mask for bits in register("CONTROL").bits)
DONE_EVENT, FAULT_EVENT = (bits.mask for bits in register("INTERRUPT_STATUS").bits)
EVENTS = DONE_EVENT + FAULT_EVENT

# How a channel stands still: the chance to begin, and for how many cycles at most.
HABITS = ((0.0, 1), (0.2, 1), (0.5, 1), (0.5, 4), (0.9, 2), (0.03, 80))


# Peers -----------------------------------------------------------------------------------------


class Dram:
    """What the bus reaches: bytes from ``base`` on. Beats within ``errors`` fail."""

    def __init__(self, clock, rng):
        self.clock, self.rng = clock, rng
        self.delayed = 0.0  # share of beats that take their time
        self.place(np.zeros(PAGE_BYTES, np.uint8), 0)

    def place(self, content, base, errors=(0, 0)):
        self.content, self.base, self.errors = content.copy(), base, range(*errors)

    @property
    def window(self):
        return range(self.base, self.base + len(self.content))

    async def _reach(self, address):
        if self.rng.random() < self.delayed:
            await ClockCycles(self.clock, self.rng.randint(1, 40))
        if address not in self.window or address - self.base in self.errors:
            raise ValueError(f"{address:#x} fails")
        return address - self.base

    async def read(self, address, length):
        at = await self._reach(address)
        return self.content[at : at + length].tobytes()

    async def write(self, address, data):
        at = await self._reach(address)
        self.content[at : at + len(data)] = np.frombuffer(data, np.uint8)


class Reordering(AxiSlaveRead):
    """Serves many bursts at once, each after a delay of its own. Beats of different IDs mix at
    random, as AXI allows; those of one ID stay in order."""

    async def _process_read(self):
        self.ar_channel.queue_occupancy_limit = 40
        rng, edge = self.target.rng, RisingEdge(self.clock)
        open_bursts = {}  # by ID: [cycle, beats still to serve]
        for cycle in itertools.count():
            while not self.ar_channel.empty():
                ar = self.ar_channel.recv_nowait()
                first, beats, size = int(ar.araddr), int(ar.arlen) + 1, 1 << int(ar.arsize)
                rest = deque((first + i * size, i == beats - 1) for i in range(beats))
                due = cycle + rng.choice((0, 3, 70))
                open_bursts.setdefault(int(ar.arid), deque()).append((due, rest))
            due = [identity for identity, bursts in open_bursts.items() if bursts[0][0] <= cycle]
            if due and not self.r_channel.full():
                identity = rng.choice(due)
                rest = open_bursts[identity][0][1]
                await self._serve(identity, *rest.popleft())
                if not rest:
                    open_bursts[identity].popleft()
                    if not open_bursts[identity]:
                        del open_bursts[identity]
            await edge

    async def _serve(self, identity, address, last):
        r = self.r_channel._transaction_obj()
        r.rid, r.rlast, r.rresp, data = identity, last, AxiResp.OKAY, bytes(self.byte_lanes)
        try:
            data = await self._read(address, self.byte_lanes)
        except ValueError:
            r.rresp = AxiResp.SLVERR
        r.rdata = int.from_bytes(data, "little")
        await self.r_channel.send(r)


def fail_with(channel, field, response):
    """Bad beats, or answers, of a peer's channel bear this response."""
    send = channel.send

    async def changed(item):
        if getattr(item, field) != AxiResp.OKAY:
            setattr(item, field, response)
        await send(item)

    channel.send = changed


async def stall(clock, channels, rng):
    """Holds channels back at random, each in a way of its own."""
    edge = RisingEdge(clock)
    habits = [[channel, *rng.choice(HABITS), 0] for channel in channels]
    while True:
        await edge
        for habit in habits:
            channel, chance, most, left = habit
            if left:
                habit[3] = left - 1
            elif stands := rng.random() < chance:
                habit[3] = rng.randrange(most)
            if not left:
                channel.pause = stands


# Bench -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ended:
    """How a program ended: the registers, and what DRAM holds."""

    status: int
    fault: Fault
    fault_at: int
    cycles: int
    causes: dict[Engine, dict[Cause, int]]
    dram: np.ndarray


class Bench:
    """A core just out of reset, its peers, its monitor."""

    def __init__(self, dut, seed, peer):
        self.dut, self.rng = dut, Random(seed)
        self.clock = dut.aclk
        self.dram = Dram(self.clock, self.rng)
        around = {"reset": dut.aresetn, "reset_active_level": False}
        bus = AxiBus.from_prefix(dut, "m_axi")
        self.writes = AxiSlaveWrite(bus.write, self.clock, target=self.dram, **around)
        self.reads = peer(bus.read, self.clock, target=self.dram, **around)
        driver = AxiLiteBus.from_prefix(dut, "s_axi")
        self.driver = AxiLiteMaster(driver, self.clock, **around)
        self.monitor = Monitor(dut, CONFIG)

    @classmethod
    async def begin(cls, dut, seed, *, peer=AxiSlaveRead):
        """Resets the core, for peers that never wait."""
        cocotb.start_soon(Clock(dut.aclk, PERIOD, unit="ns").start())
        dut.aresetn.value = 0
        bench = cls(dut, seed, peer)
        cocotb.start_soon(bench.monitor.watch())
        await bench.hard_reset()
        return bench

    async def hard_reset(self, cycles=4):
        self.dut.aresetn.value = 0
        await self.pass_cycles(cycles)
        self.dut.aresetn.value = 1
        await self.pass_cycles(2)

    async def pass_cycles(self, cycles):
        await ClockCycles(self.clock, cycles)

    def slow_down(self, *, memory=True, registers=True):
        """Stalls and delays at random from now on."""
        channels = []
        if memory:
            self.dram.delayed = self.rng.choice((0, 0.05))
            w, r = self.writes, self.reads
            channels += [w.aw_channel, w.w_channel, w.b_channel, r.ar_channel, r.r_channel]
        if registers:
            w, r = self.driver.write_if, self.driver.read_if
            channels += [w.aw_channel, w.w_channel, w.b_channel, r.ar_channel, r.r_channel]
        cocotb.start_soon(stall(self.clock, channels, self.rng))

    # Registers --------------------------------------------------------------------------------

    async def read(self, name):
        got = await self.driver.read(register(name).offset, 4)
        assert got.resp == AxiResp.OKAY
        return int.from_bytes(got.data, "little")

    async def write(self, name, value):
        assert await self.try_write(name, value) == AxiResp.OKAY

    async def try_write(self, name, value):
        """Gives the answer."""
        done = await self.driver.write(register(name).offset, value.to_bytes(4, "little"))
        return done.resp

    # Programs ---------------------------------------------------------------------------------

    async def load(self, case, *, enable=EVENTS, base=None):
        """Places a case somewhere on the bus and tells the core where."""
        pages = len(case.dram) // PAGE_BYTES
        self.dram.place(case.dram, self.rng.randrange((1 << 20) - pages) * PAGE_BYTES, case.errors)
        self.monitor.expect(self.dram.window)
        isa, config = case.identity.words
        for name, value in {
            "PROGRAM_ISA": isa,
            "PROGRAM_CONFIG": config,
            "PROGRAM_BASE": case.base if base is None else base,
            "PROGRAM_LENGTH": len(case.stream.instructions),
            "DRAM_BASE": self.dram.base,
            "DRAM_SIZE": len(case.dram),
            "INTERRUPT_STATUS": EVENTS,
            "INTERRUPT_ENABLE": enable,
        }.items():
            await self.write(name, value)

    async def start(self, case, **how):
        await self.load(case, **how)
        await self.write("CONTROL", START)

    async def wait_for_interrupt(self):
        if not self.dut.irq.value:
            await with_timeout(RisingEdge(self.dut.irq), PATIENCE * PERIOD, "ns")

    async def settle(self):
        """Waits until the core is idle, and sees that nothing is open then; gives STATUS."""
        for _ in range(PATIENCE // 10):
            status = await self.read("STATUS")
            if not status & (RUNNING | STOPPING):
                assert self.monitor.quiet
                return status
        raise AssertionError("the core doesn't come to rest")

    async def end(self):
        """Waits for the end; gives what there is to know, and clears the interrupt."""
        await self.wait_for_interrupt()
        status = await self.settle()
        causes = {e: {c: await self.read(counter(e, c)) for c in Cause} for e in numbered(CONFIG)}
        ended = Ended(
            status,
            Fault(await self.read("FAULT_CAUSE")),
            await self.read("FAULT_INSTRUCTION"),
            await self.read("CYCLES_LOW") | await self.read("CYCLES_HIGH") << 32,
            causes,
            self.dram.content,
        )
        await self.write("INTERRUPT_STATUS", EVENTS)
        return ended

    async def run(self, case, **how):
        await self.start(case, **how)
        return await self.end()

    async def prove(self, case):
        """Runs a sound program on cleared buffers: all that it does must be right."""
        await self.run(WIPE)
        ended = await self.run(case)
        simulated = simulate(case, CONFIG.memory)
        assert not simulated.fault
        assert simulated.cycles >= 0
        assert (ended.status, ended.fault, ended.fault_at) == (DONE, Fault.NONE, 0)
        np.testing.assert_array_equal(ended.dram, simulated.memories["dram"])
        assert self.monitor.bursts == expected_bursts(case)
        assert ended.cycles == self.monitor.cycles
        assert {sum(causes.values()) for causes in ended.causes.values()} == {ended.cycles}
        return ended


# Programs --------------------------------------------------------------------------------------

# Long runs that cross pages, and a store of each kind.
PROGRAM = """
.base 0x2fa4
LOAD memory=UOP dram_base=0x7f00 x_size=4 y_size=1 z_size=1
LOAD memory=ACC dram_base=0x3ff4 x_size=40 y_size=1 z_size=1
LOAD memory=INP dram_base=0x4f80 x_size=100 y_size=1 z_size=1 pad_x1=9
LOAD memory=WGT dram_base=0x5fc4 x_size=12 y_size=2 y_stride=20 z_size=1 push_prev
STORE pop_next memory=ACC dram_base=0x8f04 x_size=30 y_size=1 z_size=1
STORE memory=ACC dram_base=0x9ff8 x_size=3 x_stride=254 y_size=2 y_stride=1 z_size=2 z_pitch=9
STORE memory=ACC8 dram_base=0xbfe4 x_size=16 y_size=2 y_stride=20 y_pitch=16 z_size=1
FINISH
"""


def case_of(text, size=1 << 16):
    """A case from assembly, in a DRAM full of noise."""
    program = assemble(text, CONFIG)
    noise = np.random.default_rng(0).bytes(size)
    return Case.of(replace(program, data={0: noise, **program.data}), size)


def assert_stored(case, bursts, dram):
    """DRAM holds what some bursts of a sound program's stores wrote, and nothing else has changed.

    Words that the program stores to more than once aren't compared; bad ones stay as they were.
    """
    port = CONFIG.port_bytes
    whole = simulate(replace(case, errors=(0, 0)), CONFIG.memory).memories["dram"]
    expected, often = case.dram.copy(), np.zeros(len(case.dram), int)
    for address, beats in bursts:
        there = slice(address, address + beats * port)
        expected[there] = whole[there]
    for at in range(*case.errors, port):
        expected[at : at + port] = case.dram[at : at + port]
    for address, beats in expected_bursts(case)["store"]:
        often[address : address + beats * port] += 1
    np.testing.assert_array_equal(dram[often < 2], expected[often < 2])


def _wipe():
    """Zeroes the buffers, which the simulator finds zero."""
    tiles = {m: CONFIG.depth(m.buffer) for m in (Mem.INP, Mem.WGT, Mem.ACC, Mem.UOP)}
    loads = [Load(memory=m, y_size=1, z_size=n, pad_x1=1) for m, n in tiles.items()]
    return Case.of(Program(CONFIG, [*loads, Finish()], 0, {}), PAGE_BYTES)


WIPE = _wipe()


def expected_bursts(case):
    """What docs/timing.md, section 2, says of every burst of a program."""
    bursts = {"fetch": cut(case.base, len(case.raw)), "load": [], "store": []}
    for each in case.stream.instructions:
        if isinstance(each, Load | Store):
            bursts["load" if isinstance(each, Load) else "store"] += [
                burst for address, length in rows(each) for burst in cut(address, length)
            ]
    return bursts


def rows(each):
    """The runs of a LOAD or STORE: address, bytes."""
    entry = CONFIG.entry(Mem(each.memory).name.lower())
    dense = each.x_stride == 1
    length = each.x_size * entry if dense else entry
    steps = range(min(each.x_size, 1)) if dense else range(each.x_size)
    for z, y, x in itertools.product(range(each.z_size), range(each.y_size), steps):
        offset = z * each.z_stride + y * each.y_stride + x * each.x_stride
        yield each.dram_base + offset * entry, length


def cut(address, length):
    """A run as bursts: as long as they may be, none across a page."""
    bursts = []
    while length:
        most = min(CONFIG.burst_beats * CONFIG.port_bytes, PAGE_BYTES - address % PAGE_BYTES)
        size = min(length, most)
        bursts.append((address, size // CONFIG.port_bytes))
        address, length = address + size, length - size
    return bursts
