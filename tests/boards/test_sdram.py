"""The SDRAM controller against a model of the chip that checks every timing of its datasheet."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest
from amaranth import Module
from amaranth.sim import Simulator

from tests.support.sdram import add_clocks, join_chip
from vdla.boards.board import BoardError
from vdla.boards.models.sdram import Broken
from vdla.boards.soc.sdram import (
    AS4C16M16SA,
    EM638325,
    FAST,
    ONE_CLOCK,
    REFRESHES_PUT_OFF,
    Controller,
    Pads,
    banks,
)
from vdla.boards.soc.sdram.chip import ALL_BANKS, Command

SMALL = replace(AS4C16M16SA, row_bits=4, column_bits=6, power_up=3000, refresh_ms=64 / 512)
WIDE = replace(EM638325, row_bits=4, column_bits=6, power_up=3000, refresh_ms=64 / 512)


class Board:
    """Controller, the registers at the pads, and the chip."""

    def __init__(self, chip=SMALL, clock=60e6, port_bytes=4, pads=ONE_CLOCK, expected=SMALL):
        self.controller = Controller(expected, clock, port_bytes, tag_bits=2, pads=pads)
        self.m, self.pads = Module(), pads
        self.m.submodules.controller = self.controller
        self.chip = join_chip(self.m, self.controller, chip, clock, pads)

    def run(self, *benches):
        simulator = Simulator(self.m)
        add_clocks(simulator, self.pads)
        for bench in benches:
            simulator.add_testbench(bench)
        simulator.run()
        return simulator


class Traffic:
    """Random requests against a dictionary; ``pace`` is how likely a write beat is ready."""

    def __init__(self, board, seed, requests, pace=0.8, rest=0.2):
        self.board, self.random = board, Random(seed)
        self.memory, self.expected, self.requests = {}, [], requests
        self.pace, self.rest, self.done, self.cycles = pace, rest, False, 0

    async def issue(self, ctx):
        memory, random = self.board.controller.memory, self.random
        space = 1 << len(memory.at)
        near = random.sample(range(space - 40), 6)
        for number in range(self.requests):
            while random.random() < self.rest:
                await ctx.tick()
            at, count = random.choice(near) + random.randrange(4), random.choice((1, 2, 7, 16))
            write = random.random() < 0.5
            ctx.set(memory.valid, 1)
            ctx.set(memory.write, write)
            ctx.set(memory.at, at)
            ctx.set(memory.count, count)
            ctx.set(memory.tag, number % 4)
            while not ctx.get(memory.ready):
                await ctx.tick()
            await ctx.tick()
            ctx.set(memory.valid, 0)
            if write:
                await self._write(ctx, at, count)
            else:
                self.expected += [
                    (number % 4, k == count - 1, self.memory.get(at + k, 0)) for k in range(count)
                ]
        for _ in range(400):  # two requests may still be at work
            await ctx.tick()
        self.done = True

    async def _write(self, ctx, at, count):
        memory = self.board.controller.memory
        done = 0
        for k in range(count):
            while self.random.random() > self.pace:
                await ctx.tick()
            value = self.random.getrandbits(len(memory.write_data))
            self.memory[at + k] = value
            ctx.set(memory.write_data, value)
            ctx.set(memory.write_valid, 1)
            while not ctx.get(memory.write_ready):
                await ctx.tick()
            done += ctx.get(memory.done)
            assert done == (k == count - 1)
            await ctx.tick()
            ctx.set(memory.write_valid, 0)

    async def watch(self, ctx):
        memory, chip = self.board.controller.memory, self.board.chip
        while not self.done:
            assert Broken(ctx.get(chip.broken)) == Broken.NONE
            if ctx.get(memory.read_valid):
                fields = (memory.read_tag, memory.read_last, memory.read_data)
                found = tuple(ctx.get(field) for field in fields)
                assert found == self.expected.pop(0)
            self.cycles += 1
            await ctx.tick()
        assert not self.expected


HALF_RATE = {(25e6, 8, 0), (50e6, 16, 1), (71e6, 4, 1)}
QUICK = {(25e6, 2), (25e6, 16), (100e6, 4), (100e6, 8)}  # all but these are long


@pytest.mark.parametrize(
    ("clock", "port_bytes"),
    [
        pytest.param(*each, marks=() if each in QUICK else pytest.mark.long)
        for each in product([25e6, 60e6, 100e6], [2, 4, 8, 16])
    ],
)
def test_random_requests(clock, port_bytes):
    board = Board(clock=clock, port_bytes=port_bytes)
    traffic = Traffic(board, seed=port_bytes, requests=120)
    board.run(traffic.issue, traffic.watch)


@pytest.mark.parametrize(("clock", "port_bytes"), [(75e6, 4), (48e6, 8)])
def test_random_requests_to_words_of_32_bits(clock, port_bytes):
    board = Board(WIDE, clock, port_bytes, Pads(late=1), WIDE)
    traffic = Traffic(board, seed=port_bytes, requests=120)
    board.run(traffic.issue, traffic.watch)


@pytest.mark.parametrize(
    ("clock", "port_bytes", "late"),
    [
        pytest.param(*each, marks=() if each in HALF_RATE else pytest.mark.long)
        for each in product([25e6, 50e6, 60e6, 71e6], [4, 8, 16], [0, 1])
    ],
)
def test_random_requests_at_twice_the_clock(clock, port_bytes, late):
    board = Board(clock=clock, port_bytes=port_bytes, pads=Pads(2, late))
    traffic = Traffic(board, seed=port_bytes, requests=120)
    board.run(traffic.issue, traffic.watch)


def test_refreshes_come_in_between_under_full_load():
    board = Board()
    traffic = Traffic(board, seed=1, requests=300, pace=1, rest=0)
    seen = []

    async def count(ctx):
        while not traffic.done:
            seen.append(ctx.get(board.chip.command) == Command.REFRESH)
            await ctx.tick()

    board.run(traffic.issue, traffic.watch, count)
    interval = int(SMALL.refresh_ms * 1e6 / 16 * 0.06)
    assert sum(seen) >= 8 + traffic.cycles // interval - 1 - REFRESHES_PUT_OFF
    assert traffic.cycles > 4 * interval


SLOWER = {
    "power_up": (4000, Broken.POWER_UP),
    "precharge": (60, Broken.PRECHARGE_TIME),
    "activate": (60, Broken.ACTIVATE_TIME),
    "row_open": (300, Broken.ROW_OPEN),
    "row_open_most": (500, Broken.ROW_OPEN_MOST),
    "row_cycle": (400, Broken.ROW_CYCLE),
    "other_row": (500, Broken.OTHER_ROW),
    "write_recovery": (100, Broken.WRITE_RECOVERY),
    "mode_clocks": (9, Broken.MODE_TIME),
    "refresh_ms": (SMALL.refresh_ms / 3, Broken.REFRESH_RATE),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if place % 3 == 0 else pytest.mark.long)
        for place, name in enumerate(SLOWER)
    ],
)
def test_the_model_catches_a_controller_for_a_faster_chip(name):
    figure, rule = SLOWER[name]
    board = Board(replace(SMALL, **{name: figure}))
    traffic = Traffic(board, seed=3, requests=200, pace=1, rest=0)
    seen = set()

    async def watch(ctx):
        while not traffic.done:
            seen.add(Broken(ctx.get(board.chip.broken)))
            await ctx.tick()

    board.run(traffic.issue, watch)
    expected = {rule, Broken.REFRESH_TIME} if name == "row_cycle" else {rule}
    assert seen - {Broken.NONE} <= expected
    assert len(seen) == 2


def test_one_command_at_a_time_and_its_address():
    """MODE says CAS latency 2 and a beat's burst; PRECHARGE before it closes all banks."""
    board, seen = Board(), []

    async def watch(ctx):
        for _ in range(400):
            command = ctx.get(board.chip.command)
            if command != Command.NOTHING:
                seen.append((Command(command), ctx.get(board.chip.address)))
            await ctx.tick()

    board.run(watch)
    set_up = [(Command.PRECHARGE, ALL_BANKS), *[(Command.REFRESH, 0)] * 8, (Command.MODE, 0x21)]
    assert seen[:10] == set_up


def test_half_rate_commands_are_a_clock_long_and_mode_has_the_clocks_latency():
    """Each command is in the first clock of a cycle; the second one has NOTHING."""
    board, seen = Board(clock=70e6, pads=Pads(2, 1)), []

    async def watch(ctx):
        for clock in range(900):
            await ctx.tick(FAST)
            if (command := ctx.get(board.chip.command)) != Command.NOTHING:
                seen.append((clock % 2, Command(command), ctx.get(board.chip.address)))

    board.run(watch)
    assert len({half for half, *_ in seen}) == 1
    assert [each[1] for each in seen[:10]] == [
        Command.PRECHARGE, *[Command.REFRESH] * 8, Command.MODE
    ]  # fmt: skip
    assert seen[9][2] == 0x31


@pytest.mark.parametrize(("clock", "port_bytes", "ratio", "message"), [
    (150e6, 4, 1, "memory AS4C16M16SA-7: expected a clock of at most 142.8 MHz, found 150"),
    (75e6, 4, 2, "memory AS4C16M16SA-7: expected a clock of at most 142.8 MHz, found 150"),
    (60e6, 32, 1, "memory AS4C16M16SA-7: expected port_bytes 2, 4, 8 or 16, found 32"),
    (60e6, 2, 2, "memory AS4C16M16SA-7: expected port_bytes 4, 8 or 16, found 2"),
])  # fmt: skip
def test_what_the_chip_cannot_do(clock, port_bytes, ratio, message):
    with pytest.raises(BoardError, match=message):
        banks(SMALL, clock, port_bytes, pads=Pads(ratio))
