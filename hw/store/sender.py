"""STORE's burst side: sends the beats in the write buffer as bursts, or to a destination on chip.

1. It works on the oldest instruction whose beats haven't all moved. The first beat of a burst waits
   while ``writes_in_flight`` bursts are unanswered; after ``stop`` it waits for ever.
2. A beat that has been shown stays, even after ``stop``.
3. A walk is taken with the last run of the one before (``hw/runs.py``), and a run with the last
   beat of the one before: so what a beat needs is in registers before it is there.
4. Whether a burst lies outside DRAM is worked out with it, and kept beside it.
5. A beat that goes to a destination (``destination.py``) opens no burst: it is one of a beat by
   itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value

from vdla.hw.bursts import Bursts, Run, to_bytes
from vdla.hw.count import Count
from vdla.hw.interfaces import Port
from vdla.hw.runs import Runs
from vdla.hw.store.destination import Chosen, DestinationHooks, is_outside_target
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
        # ``walks``: a walk has a run to offer; ``active``: a burst is next, or under way.
        self.walks, self.active = Signal(name="walks_on"), Signal(name="sends")
        self.last_run = Signal(name="last_run", reset_less=True)  # of the instruction
        self.burst_left = Signal(range(config.burst_beats + 1))
        self.opens = Signal(init=1)  # the next beat is a burst's first
        self.unanswered = Count(m, "unanswered", config.writes_in_flight)
        self.shown = Signal()
        # Destinations, each whether the beats of the walk on offer go there, and those of the run.
        self.offered, self.chosen = (
            {
                each: Signal(name=f"{each.flag}{when}", reset_less=True)
                for each in ports.destinations
            }
            for when in ("_next", "")
        )
        self.runs = Runs(m, config, started.walk)
        self.bursts = Bursts(m, config, len(started.walk.beats), self._is_outside(self.chosen))
        self.ends = Signal(name="ends")  # the next beat is a burst's last
        self._connect()

    def _connect(self) -> None:
        ports, bursts = self.ports, self.bursts
        waits = self.active & ~self.started.sender.empty & ports.beat_waits
        offered = waits & (~self.opens | ~self.unanswered.full)
        for chosen in self.chosen.values():
            offered = Mux(chosen, waits, offered)
        self.fails: Value = offered & self.opens & bursts.outside
        sent_to_bus = self._offer(offered)
        self.opened: Value = sent_to_bus & self.opens
        self._count(sent_to_bus)
        self._go_on()

    def _is_outside(self, chosen: Chosen) -> Callable[[Value], Value]:
        config, pages = self.config, self.ports.dram_pages
        return lambda place: is_outside_target(config, place, pages, chosen)

    def _offer(self, offered: Value) -> Value:
        """Shows a beat to the bus, and the burst's address and length with its first; or offers it
        to its destination. Returns whether the bus takes it."""
        write, opens, sent, bursts = self.ports.write, self.opens, self.ports.sent, self.bursts
        to_bus = offered
        for chosen in self.chosen.values():
            to_bus = to_bus & ~chosen
        self.m.d.comb += [
            write.valid.eq(to_bus & ~(opens & (bursts.outside | (self.ports.stop & ~self.shown)))),
            write.first.eq(opens),
            self.ends.eq(Mux(opens, bursts.beats == 1, self.burst_left == 1)),
            write.last.eq(self.ends),
            write.address.eq(to_bytes(self.config, bursts.place)),
            write.beats.eq(bursts.beats),
        ]
        taken = write.valid & write.ready
        if not self.chosen:
            self.m.d.comb += sent.eq(taken)
            return sent
        moves = taken
        for destination, chosen in self.chosen.items():
            due = offered & chosen & ~bursts.outside
            moves = moves | destination.write(self.m, bursts.place, self.ports.beat, due)
        self.m.d.comb += sent.eq(moves)
        return taken

    def _count(self, sent: Value) -> None:
        """Beats left of the burst, and bursts that wait for their answer."""
        m, write, bursts = self.m, self.ports.write, self.bursts
        m.d.sync += self.shown.eq(write.valid & ~write.ready)
        self.unanswered.move(sent & self.opens, write.answered)
        with m.If(sent):
            m.d.sync += [
                self.burst_left.eq(Mux(self.opens, bursts.beats, self.burst_left) - 1),
                self.opens.eq(self.ends),
            ]

    def _go_on(self) -> None:
        """To the next burst, run and walk; lets an instruction go that has sent everything, or has
        nothing."""
        m, runs, bursts, started = self.m, self.runs, self.bursts, self.started
        free, begins, closes = (Signal(name=n) for n in ("free", "walk_begins", "closes"))
        ends = self.ports.sent & self.ends  # a burst
        m.d.comb += [
            closes.eq(ends & bursts.ends_run),
            free.eq(~self.active | closes),
            begins.eq(~self.walks | runs.last),
            started.takes.eq(~self.walks | (runs.last & free)),
            started.passes.eq((closes & self.last_run) | (started.sending & started.sender.empty)),
        ]
        runs.go(~self.walks | free, begins)
        single: Value | None = None
        for flag in self.offered.values():
            single = flag if single is None else single | flag
        outside = self._is_outside(self.offered)(runs.place)
        run = Run(runs.place, runs.beats, outside, single)
        bursts.go(~self.active | ends, ~self.active | bursts.ends_run, run)
        with m.If(free):
            m.d.sync += [self.active.eq(self.walks), self.last_run.eq(runs.last)]
            m.d.sync += [self.chosen[each].eq(flag) for each, flag in self.offered.items()]
        with m.If(started.takes):
            m.d.sync += self.walks.eq(started.walk_waits)
            m.d.sync += [flag.eq(started.chosen[each]) for each, flag in self.offered.items()]
