"""STORE's burst side: sends the beats in the write buffer as bursts, or to a destination on chip.

1. It works on the oldest instruction whose beats haven't all moved. The first beat of a burst waits
   while ``writes_in_flight`` bursts are unanswered; after ``stop`` it waits for ever.
2. A beat that has been shown stays, even after ``stop``.
3. It holds the walk at work in registers, and takes the next one with the last beat.
4. Whether the place of the next beat is outside DRAM is worked out with it, and kept beside it.
5. A walk whose beats go to a destination (``destination.py``) opens no burst, so the next beat is a
   burst's first until it has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value

from vdla.hw.bursts import beat_bits, burst_beats, to_bytes
from vdla.hw.count import Count
from vdla.hw.interfaces import Port
from vdla.hw.layout import add_sticky
from vdla.hw.loops import Countdown
from vdla.hw.store.destination import DestinationHooks, is_outside_target
from vdla.hw.store.dram_walk import DramWalk
from vdla.hw.store.started import Started
from vdla.isa.config import Config


@dataclass(frozen=True)
class SenderPorts:
    """Ports that the burst side is connected to. It drives ``write``, but for the data, ``sent``,
    and what the destinations have."""

    write: Port  # interfaces.write_request
    beat_waits: Value  # the write buffer has a beat
    sent: Signal  # that beat moves
    dram_pages: Value  # where DRAM ends
    stop: Value  # no more bursts are to be opened
    beat: Value  # the one in the write buffer
    destinations: Sequence[DestinationHooks]  # other than the bus


class Sender:
    """``opened``: a burst's first beat moves; ``fails``: the burst to open lies outside DRAM, or
    the beat to write beyond its destination."""

    def __init__(self, m: Module, config: Config, ports: SenderPorts, started: Started) -> None:
        self.m, self.config, self.ports, self.started = m, config, ports, started
        self.now = Signal(started.walk.shape(), name="walk", reset_less=True)  # the one at work
        self.active = Signal(name="sends")
        self.run = Countdown(m, "run", self.now.run)  # of beats
        self.place = Signal(beat_bits(config) + 1, reset_less=True)  # the beat that it stores to
        self.burst_left = Signal(range(config.burst_beats + 1))
        self.opens = Signal(init=1)  # the next beat is a burst's first
        self.unanswered = Count(m, "unanswered", config.writes_in_flight)
        self.shown = Signal()
        self.length = burst_beats(config, self.place, self.run.left)
        self.outside = Signal()
        # Destinations, each whether the walk's beats go there.
        self.chosen = {each: Signal(name=each.flag) for each in ports.destinations}
        self._connect()

    def _connect(self) -> None:
        ports, started = self.ports, self.started
        waits = self.active & ~started.sender.empty & ports.beat_waits
        offered = waits & (~self.opens | ~self.unanswered.full)
        for chosen in self.chosen.values():
            offered = Mux(chosen, waits, offered)
        self.fails: Value = offered & self.opens & self.outside
        self.sent_to_bus = self._offer(offered)
        self.opened: Value = self.sent_to_bus & self.opens
        moves = ~self.active | ports.sent
        walk = DramWalk(self.m, self.config, self.now)
        next_run = walk.go_on(moves, self.run.end, ~self.active, started.walk)
        begins = ~self.active | (self.run.end & walk.last)  # what comes next is the next walk
        self._pass_on(begins, moves, walk.last)
        self._count()
        self._go_on(begins, moves, next_run)

    def _offer(self, offered: Value) -> Value:
        """Shows a beat to the bus, and the burst's address and length with its first; or offers it
        to its destination. Returns whether the bus takes it."""
        write, opens, sent = self.ports.write, self.opens, self.ports.sent
        to_bus = offered
        for chosen in self.chosen.values():
            to_bus = to_bus & ~chosen
        self.m.d.comb += [
            write.valid.eq(to_bus & ~(opens & (self.outside | (self.ports.stop & ~self.shown)))),
            write.first.eq(opens),
            write.last.eq(Mux(opens, self.length == 1, self.burst_left == 1)),
            write.address.eq(to_bytes(self.config, self.place)),
            write.beats.eq(self.length),
        ]
        taken = write.valid & write.ready
        if not self.chosen:
            self.m.d.comb += sent.eq(taken)
            return sent
        moves = taken
        for destination, chosen in self.chosen.items():
            due = offered & chosen & ~self.outside
            moves = moves | destination.write(self.m, self.place, self.ports.beat, due)
        self.m.d.comb += sent.eq(moves)
        return taken

    def _pass_on(self, begins: Value, moves: Value, last_run: Value) -> None:
        """Takes the next walk; lets an instruction go that has sent everything, or has nothing."""
        started, sent = self.started, self.ports.sent
        sent_all = sent & self.run.end & last_run
        self.m.d.comb += [
            started.takes.eq(begins & moves),
            started.passes.eq(sent_all | (started.sending & started.sender.empty)),
        ]

    def _count(self) -> None:
        """Beats left of the burst, and bursts that wait for their answer."""
        m, write, sent = self.m, self.ports.write, self.sent_to_bus
        m.d.sync += self.shown.eq(write.valid & ~write.ready)
        self.unanswered.move(sent & self.opens, write.answered)
        with m.If(sent):
            m.d.sync += [
                self.burst_left.eq(Mux(self.opens, self.length, self.burst_left) - 1),
                self.opens.eq(write.last),
            ]

    def _go_on(self, begins: Value, moves: Value, next_run: Value) -> None:
        """To the next beat: of this run, of the next run, or of the next walk."""
        m, walk = self.m, self.started.walk
        self.run.go(moves, begins, walk.run)
        place = Mux(self.run.end, next_run, add_sticky(self.place, 1))
        with m.If(begins):
            m.d.sync += self.now.eq(walk)
        with m.If(begins & moves):
            m.d.sync += self.active.eq(self.started.walk_waits)
            for destination, chosen in self.chosen.items():
                # ``now`` is replaced before the last beat moves.
                m.d.sync += chosen.eq(walk[destination.flag])
        with m.If(moves):
            pages = self.ports.dram_pages
            outside = is_outside_target(self.config, place, pages, self.chosen)
            m.d.sync += [
                self.place.eq(Mux(begins, walk.base, place)),
                self.outside.eq(Mux(begins, walk.outside, outside)),
            ]
