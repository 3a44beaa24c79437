"""The SDRAM's controller of boards/soc/sdram, whatever is asked of it and whenever programs begin.

1. No command comes before the datasheet's waits are over: tRCD, tRP, tRAS, tRC, tRRD, tWR, tRFC,
   the burst's length, the turn of the data bus.
2. ACTIVATE finds its bank closed, REFRESH all of them; a column command finds the row of its own
   address open.
3. There is at most one command in a cycle.

What the chip knows is kept beside it, from the pins alone, and its registers are proved to fit.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from amaranth import Array, Cat, Const, Mux, Signal

from vdla.boards.soc.sdram import AS4C16M16SA, Controller, Pads, power_up
from vdla.boards.soc.sdram.chip import ALL_BANKS, MOST_PUT_OFF, Command
from vdla.boards.soc.sdram.requests import State

CHIP = replace(AS4C16M16SA, row_bits=2, column_bits=3, bank_bits=1, power_up=30, refresh_ms=32e-4)


class Chip:
    """What the datasheet remembers of the commands: clocks since each, and the open rows."""

    def __init__(self, m, controller, ready):
        self.m, self.most = m, 15
        pins, self.banks = controller.pins, controller.banks
        self.now = {c: ready & (pins.command == c) for c in Command}
        everywhere = (pins.address & ALL_BANKS) != 0
        here = [pins.bank == b for b in range(self.banks.count)]
        now = self.now
        self.activate = [now[Command.ACTIVATE] & each for each in here]
        self.precharge = [now[Command.PRECHARGE] & (each | everywhere) for each in here]
        self.read = [now[Command.READ] & each for each in here]
        self.write = [now[Command.WRITE] & each for each in here]
        self.column = now[Command.READ] | now[Command.WRITE]
        self.open = Signal(self.banks.count)
        self.rows = Array(Signal(CHIP.row_bits, name=f"ghost_row_{b}") for b in range(len(here)))
        for b in range(len(here)):
            with m.If(self.activate[b]):
                m.d.sync += [self.open[b].eq(1), self.rows[b].eq(pins.address)]
            with m.If(self.precharge[b]):
                m.d.sync += self.open[b].eq(0)

    def since(self, name, event):
        """Clocks since an event; ``most`` if it is long ago."""
        clocks = Signal(range(self.most + 1), init=self.most, name=f"since_{name}")
        self.m.d.sync += clocks.eq(Mux(event, 1, Mux(clocks == self.most, self.most, clocks + 1)))
        return clocks


def fits(proof, wait, since):
    """A wait's row of ones is what the clocks since its start leave of it."""
    full = (1 << (wait.cycles - 1)) - 1
    proof.check(wait.ones == Const(full << 1) >> since)
    proof.check(since != 0)


CLOCKS = {"as the core": (60e6, Pads()), "twice the core": (70e6, Pads(2, 1))}


def build(proof, requests, clocks="as the core", *, honest=True):
    clock, pads = CLOCKS[clocks]
    controller = Controller(CHIP, clock, 4, 1, requests, refreshes_put_off=1, pads=pads)
    proof.add(controller)
    chip = Chip(proof.m, controller, controller.ready)
    waits, work, banks = controller.waits, controller.work, controller.banks
    proof.assume(controller.memory.count != 0)
    if not honest:  # a wait that the controller knows nothing of
        banks = replace(banks, row_open=banks.row_open + 2)
    anything = {"activate": chip.activate, "precharge": chip.precharge}
    since = {
        name: [chip.since(f"{name}_{b}", e) for b, e in enumerate(events)]
        for name, events in (*anything.items(), ("read", chip.read), ("write", chip.write))
    }
    latest = {
        "activate": chip.since("activate", chip.now[Command.ACTIVATE]),
        "refresh": chip.since("refresh", chip.now[Command.REFRESH]),
        "read": chip.since("read", chip.now[Command.READ]),
        "write": chip.since("write", chip.now[Command.WRITE]),
        "column": chip.since("column", chip.column),
    }
    starts = {
        "activate": "activate",
        "row_open": "activate",
        "row_cycle": "activate",
        "precharge": "precharge",
        "read_recovery": "read",
        "write_recovery": "write",
    }
    for b in range(banks.count):
        for name, wait in waits.banks[b].items():
            fits(proof, wait, since[starts[name]][b])
    for wait, name in (
        (waits.other_row, "activate"),
        (waits.refresh, "refresh"),
        (waits.read_to_write, "read"),
        (waits.write_to_read, "write"),
        (controller.column, "column"),
    ):
        fits(proof, wait, latest[name])
    proof.check(controller.rows.open == chip.open)
    for b in range(banks.count):
        proof.check(controller.rows.rows[b] == chip.rows[b], when=chip.open[b])
    now, next_, refresh = work.now, work.next, controller.refresh
    states(proof, now, chip, now.full)
    states(proof, next_, chip, next_.full & ~refresh.on_its_way)
    together = now.full & next_.full & (now.bank == next_.bank)
    proof.check(now.state == State.READY, when=together & (next_.state == State.READY))
    waiting = (next_.state == State.OPEN) | (next_.state == State.CLOSE)
    proof.check(~waiting, when=together)
    proof.check(controller.ready, when=now.full | next_.full | refresh.closed)
    proof.check(chip.open == 0, when=refresh.closed | ~controller.ready)
    proof.check(refresh.on_its_way & ~now.full, when=refresh.closed)
    proof.check(refresh.due <= MOST_PUT_OFF)
    rules(proof, controller, chip, banks, since, latest)
    return controller, chip


def states(proof, place, chip, when):
    """A request's state is what its bank is in."""
    is_open = Array(chip.open)[place.bank]
    own = is_open & (chip.rows[place.bank] == place.row)
    proof.check(own, when=when & (place.state == State.READY))
    proof.check(is_open, when=when & (place.state == State.CLOSE))
    proof.check(~is_open, when=when & (place.state == State.OPEN))


def rules(proof, controller, chip, banks, since, latest):
    work, now = controller.work, chip.now
    refresh = now[Command.REFRESH]
    for b in range(banks.count):
        column = chip.read[b] | chip.write[b]
        proof.check(since["activate"][b] >= banks.activate, when=column)
        proof.check(chip.open[b], when=column)
        closes = chip.precharge[b] & chip.open[b]
        proof.check(since["activate"][b] >= banks.row_open, when=closes)
        proof.check(since["read"][b] >= banks.read_recovery, when=closes)
        proof.check(since["write"][b] >= banks.write_recovery, when=closes)
        opens = chip.activate[b]
        proof.check(since["precharge"][b] >= banks.precharge, when=opens | refresh)
        proof.check(since["activate"][b] >= banks.row_cycle, when=opens)
        proof.check(~chip.open[b], when=opens | refresh)
    proof.check(latest["activate"] >= banks.other_row, when=now[Command.ACTIVATE])
    anything = Cat(each for command, each in now.items() if command != Command.NOTHING).any()
    proof.check(latest["refresh"] >= banks.refresh_cycles, when=anything | (chip.open != 0))
    proof.check(latest["column"] >= controller.beat_cycles, when=chip.column)
    proof.check(latest["read"] >= banks.read_to_write, when=now[Command.WRITE])
    proof.check(latest["write"] >= banks.write_to_read, when=now[Command.READ])
    at = work.now
    row = chip.rows[controller.pins.bank]
    proof.check((row == at.row) & (controller.pins.bank == at.bank), when=chip.column)
    refreshes = controller.refresh
    commands = (
        work.moves,
        work.activates,
        work.precharges,
        refreshes.precharges,
        refreshes.refreshes,
    )
    proof.check(sum(commands) <= 1)


@pytest.fixture(autouse=True)
def short_power_up(monkeypatch):
    """One refresh in place of eight, which would make every trace long."""
    monkeypatch.setattr(power_up, "POWER_UP_REFRESHES", 1)


@pytest.mark.parametrize(("requests", "clocks"), [
    (1, "as the core"), (2, "as the core"), (2, "twice the core"),
])  # fmt: skip
def test_no_rule_of_the_chip_is_broken(proof, requests, clocks):
    controller, chip = build(proof, requests, clocks)
    now = chip.now
    proof.cover(now[Command.WRITE] & controller.work.ends & ~controller.work.next.full)
    proof.prove(depth=3, reach=26)


def test_a_longer_wait_would_be_broken(proof):
    build(proof, 2, honest=False)
    proof.refute(depth=26)


@pytest.mark.parametrize(("honest", "clocks"), [
    (True, "as the core"), (False, "as the core"), (True, "twice the core"),
])  # fmt: skip
def test_a_program_finds_the_memory_as_after_power_up(proof, honest, clocks):
    """In cycle ``start_cycles`` of a program every row is closed, no wait is under way and no
    refresh is due, in whatever state of a refresh it began, if no request was at work."""
    controller, chip = build(proof, 2, clocks)
    work, waits, refresh = controller.work, controller.waits, controller.refresh
    start = controller.banks.start_cycles if honest else controller.banks.start_cycles - 1
    m, begins = proof.m, controller.begins
    since = Signal(range(start + 2), init=start + 1, name="since_begin")
    m.d.sync += since.eq(Mux(begins, 1, Mux(since == start + 1, since, since + 1)))
    proof.assume(~begins | (controller.ready & ~work.now.full & ~work.next.full))
    proof.assume(~begins | (since > start))  # the last program's start is over
    proof.check((since != 0) & (since <= start + 1))
    proof.check(refresh.starting, when=begins | (since < start))
    now = since == start
    proof.check(~refresh.starting & (chip.open == 0) & (refresh.due == 0), when=now)
    over = waits.all_close & waits.all_open & controller.column.over
    proof.check(over & waits.read_to_write.over & waits.write_to_read.over, when=now)
    proof.check(Cat(waits.columns).all() & ~refresh.on_its_way & ~work.now.full, when=now)
    proof.cover(now & proof.past(work.next.full))
    if honest:
        proof.prove(depth=start + 3, reach=30)
    else:
        proof.refute(depth=30)
