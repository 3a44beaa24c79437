"""The SDRAM controller behind the core's port keeps docs/timing.md, section 12, to the cycle."""

from dataclasses import dataclass, replace
from functools import cache

import pytest
from amaranth import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.banks import Happened, Interpreter, Read, Write
from tests.support.sdram import add_clocks, join_chip
from vdla.boards.models.sdram import Broken
from vdla.boards.soc.axi import AxiMemory
from vdla.boards.soc.memory import Shared
from vdla.boards.soc.sdram import AS4C16M16SA, ONE_CLOCK, Controller, Pads
from vdla.boards.soc.sdram.chip import Command
from vdla.isa.config import load_config

CHIP = replace(AS4C16M16SA, row_bits=4, column_bits=6, power_up=3000, refresh_ms=64 / 2048)
WORD = CHIP.word_bits // 8
MORE = 20  # cycles after the last beat or answer, in which nothing may come
REST = 200  # cycles between programs, in which refreshes that are due take place
SAMPLED = ("rvalid", "rdata", "awready", "wready", "bvalid", "bresp", "arready")


@dataclass
class Job:
    reads: list
    writes: list
    cycles: int = 0


class Board:
    """The port, the controller and the chip; it runs one program after the other."""

    def __init__(self, requests=2, port_bytes=4, clock=60e6, put_off=2, pads=ONE_CLOCK):
        config = replace(load_config("paper"), port_bytes=port_bytes)
        self.controller = Controller(CHIP, clock, port_bytes, 2, requests, put_off, pads)
        self.axi = AxiMemory(config, self.controller.at_bits)
        shared = Shared(self.controller.at_bits, 8 * port_bytes, 1)
        m = Module()
        m.submodules += [self.controller, self.axi, shared]
        connect(m, self.axi.memory, shared.first)
        connect(m, shared.memory, self.controller.memory)
        self.chip = join_chip(m, self.controller, CHIP, clock, pads)
        self.cycle_bytes = pads.ratio * CHIP.word_bits // 8
        self.port_bytes, self.memory, self.job, self.broken = port_bytes, {}, None, 0
        self.simulator = Simulator(m)
        add_clocks(self.simulator, pads)
        self.simulator.add_testbench(self._bench, background=True)

    def run(self, job):
        """What happens on the RTL, and what should."""
        interpreter = Interpreter(
            self.controller.banks, self.port_bytes, self.cycle_bytes, self.memory
        )
        copies = [Write(w.address, list(w.beats)) for w in job.writes]
        expected = interpreter.run(job.reads, copies)
        ends = [*(t for t, _ in expected.beats), *expected.answers]
        self.job, self.seen = replace(job, cycles=max(ends, default=0) + MORE), Happened()
        while self.job is not None:
            self.simulator.advance()
        return self.seen, expected

    async def _bench(self, ctx):
        while not ctx.get(self.controller.ready):
            await ctx.tick()
        while True:
            for _ in range(REST):
                await ctx.tick()
            if self.job is not None:
                await self._program(ctx, self.job)
                self.job = None

    async def _program(self, ctx, job):
        bus, seen, beats = self.axi.bus, self.seen, []
        reads = {read.at: read for read in job.reads}
        for burst in job.writes:
            beats += [(burst if k == 0 else None, *beat) for k, beat in enumerate(burst.beats)]
        lasts = [k == len(w.beats) - 1 for w in job.writes for k in range(len(w.beats))]
        at, address_done, beat_done = 0, False, False
        for t in range(job.cycles):
            read = reads.get(t)
            ctx.set(bus.arvalid, read is not None)
            if read:
                ctx.set(bus.araddr, read.address)
                ctx.set(bus.arlen, read.beats - 1)
            waits = at < len(beats) and beats[at][1] <= t
            burst = beats[at][0] if waits else None
            ctx.set(bus.awvalid, burst is not None and not address_done)
            ctx.set(bus.wvalid, waits and not beat_done)
            if burst:
                ctx.set(bus.awaddr, burst.address)
                ctx.set(bus.awlen, len(burst.beats) - 1)
            if waits:
                ctx.set(bus.wdata, beats[at][2])
                ctx.set(bus.wlast, lasts[at])
            self._begin(ctx, t == 0)
            ports = [getattr(bus, name) for name in SAMPLED]
            (
                _,
                _,
                rvalid,
                rdata,
                awready,
                wready,
                bvalid,
                bresp,
                arready,
                command,
            ) = await ctx.tick().sample(*ports, self.controller.pins.command)
            assert arready
            if command not in (Command.NOTHING,) and t >= self.controller.banks.start_cycles:
                seen.commands.append((t, Command(command).name))
            if rvalid:
                seen.beats.append((t, rdata))
            if bvalid:
                assert bresp == 0
                seen.answers.append(t)
            if burst and not address_done and awready:
                address_done = True
                seen.addresses.append(t)
            if waits and not beat_done and wready:
                beat_done = True
                seen.taken.append(t)
            if waits and beat_done and (address_done or burst is None):
                at, address_done, beat_done = at + 1, False, False
        for name in ("arvalid", "awvalid", "wvalid"):
            ctx.set(getattr(bus, name), 0)
        self.broken = ctx.get(self.chip.broken)

    def _begin(self, ctx, begins):
        for part in (self.axi, self.controller):
            ctx.set(part.begins, begins)


@st.composite
def jobs(draw, port_bytes):
    """Requests around a few places, so that rows and banks meet, in bursts and with pauses."""
    rows, space = CHIP.nbytes // (WORD << CHIP.column_bits), CHIP.nbytes
    near = draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=4))
    pauses = st.sampled_from((1, 1, 1, 2, 3, 7, 20, 90))

    def place():
        row = draw(st.sampled_from(near)) * (WORD << CHIP.column_bits)
        within = draw(st.sampled_from((0, 0, -1, -2, 5))) * port_bytes
        beats = draw(st.sampled_from((1, 2, 3, 8, 16)))
        return min(max(row + within, 0), space - beats * port_bytes), beats

    reads, writes, at = [], [], draw(st.sampled_from((0, 0, 1, 5, 30)))
    for _ in range(draw(st.integers(0, 12))):
        reads.append(Read(at, *place()))
        at += draw(pauses)
    at = draw(st.sampled_from((0, 2, 9, 40)))
    for number in range(draw(st.integers(0, 8))):
        address, beats = place()
        slow = draw(st.sampled_from((1, 1, 2, 3, 11)))
        values = [(at + k * slow, number * 256 + k + 1) for k in range(beats)]
        writes.append(Write(address, values))
        at += draw(pauses)
    return Job(reads, writes)


BOARDS = {
    "as built": {},
    "one request": {"requests": 1, "put_off": 0},
    "a slow clock": {"clock": 25e6},
    "the fastest clock": {"clock": 100e6, "put_off": 5},
    "long beats": {"port_bytes": 8},
    "longest beats": {"port_bytes": 16, "requests": 1},
    "half rate": {"pads": Pads(2, 1)},
    "half rate, one request": {"pads": Pads(2, 1), "requests": 1, "put_off": 0},
    "half rate, CAS latency 2": {"pads": Pads(2), "clock": 25e6},
    "half rate, CAS latency 2, late": {"pads": Pads(2, 1), "clock": 50e6, "put_off": 5},
    "half rate, the fastest clock": {"pads": Pads(2, 1), "clock": 71e6, "put_off": 5},
    "half rate, no word late": {"pads": Pads(2), "clock": 66e6},
    "half rate, long beats": {"pads": Pads(2, 1), "port_bytes": 8, "clock": 70e6},
    "half rate, longest beats": {"pads": Pads(2), "port_bytes": 16, "requests": 1},
    "late words": {"pads": Pads(1, 1), "clock": 80e6},
    "CAS latency 3": {"pads": Pads(1, 1), "clock": 142e6},
}
SOME = (  # in one of them each parameter has another value; the long test below takes all boards
    "as built", "one request", "longest beats", "half rate", "half rate, longest beats",
    "half rate, CAS latency 2, late", "CAS latency 3",
)  # fmt: skip


@pytest.fixture(scope="module")
def boards():
    return cache(lambda name: Board(**BOARDS[name]))


def check(board, job):
    """One program, on the RTL and by the rules."""
    seen, expected = board.run(job)
    assert board.broken == Broken.NONE
    names = [(t, name.split()[0]) for t, name in expected.commands]
    assert seen.commands[: len(names)] == names
    assert seen == replace(expected, commands=seen.commands)


@pytest.mark.parametrize("name", ["as built", "one request"])
def test_refreshes_come_under_full_load(name, boards):
    """More than a refresh falls due than may be put off, while requests wait all the time."""
    board = boards(name)
    size = 16 * board.port_bytes
    reads = [Read(t, t % 7 * size, 16) for t in range(16)]
    check(board, Job(reads, [Write(1024, [(60 + k, k) for k in range(16)])]))
    assert (
        sum(command == "REFRESH" for _, command in board.seen.commands)
        > board.controller.banks.refreshes_put_off
    )


@pytest.mark.parametrize("name", SOME)
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_each_beat_and_answer_has_its_cycle(name, boards, data):
    check(boards(name), data.draw(jobs(boards(name).port_bytes)))


@pytest.mark.long
@pytest.mark.parametrize("name", BOARDS)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_each_beat_and_answer_has_its_cycle_in_many_programs(name, boards, data):
    check(boards(name), data.draw(jobs(boards(name).port_bytes)))
