"""STORE's reader: takes the scales and vectors of one instruction after the other out of ACC.

1. It takes ACC's second read port, and COMPUTE waits: before each plane of narrow vectors
   the scales, then one vector as often as the write buffer takes its beats (``pace.py``).
2. It starts the next instruction with the last vector of this one, or where it has none, if fewer
   than IN_FLIGHT have started and not finished.
3. A read beyond ACC is a fault in the cycle in which it is made.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth import Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.count import Count
from vdla.hw.interfaces import Cause, Port
from vdla.hw.layout import is_at_least
from vdla.hw.store.acc_walk import AccWalk
from vdla.hw.store.pace import Pace, Step
from vdla.hw.store.started import IN_FLIGHT
from vdla.hw.store.vectors import is_narrow, vector_beats
from vdla.isa.config import Config
from vdla.isa.registers import INDEX_BITS


@dataclass(frozen=True)
class ReaderPorts:
    """Ports of the reader, which drives ``command.start``, ``acc`` and ``activity``."""

    command: Port  # interfaces.command
    head: data.View  # the fields of the instruction at the queue's head
    acc: Port  # interfaces.read_port
    activity: Port  # interfaces.activity
    sent: Value  # a beat leaves the write buffer


class Reader:
    """``now`` and ``index``: the instruction at work; ``reads_scale``, ``reads_vector``: what it
    reads in this cycle; ``fails``: that lies beyond ACC.
    """

    def __init__(self, m: Module, config: Config, ports: ReaderPorts) -> None:
        self.m, self.config, self.ports = m, config, ports
        self.now = Signal(ports.head.shape(), reset_less=True)
        self.index = Signal(INDEX_BITS, name="now_index", reset_less=True)
        self.reads_scale, self.reads_vector = Signal(), Signal()
        # Whether it reads is a register: COMPUTE's hold waits for it.
        self.ready = Signal(name="reads")
        self.works, self.active = Signal(), Signal(name="active")
        self.in_flight = Count(m, "in_flight", IN_FLIGHT)
        self.pace = Pace(m, vector_beats(config))
        self.walk = AccWalk(m, config, self.now, ports.head)
        self.depth = config.depth("acc")
        self._connect()

    def _connect(self) -> None:
        command, walk, pace = self.ports.command, self.walk, self.pace
        self.in_flight.move(command.start, command.finish)
        unused = ~self.works
        self.moves = unused | self.reads_vector
        self.begins = walk.begins(unused)
        due = walk.go_on(self.moves, self.begins, self.reads_scale)
        may_start = command.ready & ~self.in_flight.full
        self._read(may_start)
        begins, narrow = self.moves & self.begins, is_narrow(self.config, self.ports.head.memory)
        rested, fits = pace.go_on(Step(self.reads_vector, self.ports.sent, begins, narrow))
        works = self._begin(may_start)
        self.m.d.sync += [self.works.eq(works), self.ready.eq(works & rested & (due | fits))]
        self._report(may_start)
        places = walk.scale, walk.entry
        beyond = Mux(walk.due, *(is_at_least(place, self.depth) for place in places))
        self.fails: Value = self.ready & beyond

    def _read(self, may_start: Value) -> None:
        acc, walk = self.ports.acc, self.walk
        self.m.d.comb += [
            self.reads_scale.eq(self.ready & walk.due),
            self.reads_vector.eq(self.ready & ~walk.due),
            acc.enable.eq(self.ready),
            acc.address.eq(Mux(walk.due, walk.scale, walk.entry)),
            self.ports.command.start.eq(may_start & self.begins & self.moves),
        ]

    def _begin(self, may_start: Value) -> Value:
        """Takes over the next instruction, or that there is none; returns whether there is one with
        vectors in the next cycle."""
        m, head = self.m, self.ports.head
        with m.If(self.moves & self.begins):
            m.d.sync += [
                self.now.eq(head),
                self.index.eq(self.ports.command.index),
                self.active.eq(may_start),
            ]
        empty = (head.x_size == 0) | (head.y_size == 0) | (head.z_size == 0)
        return Mux(self.moves & self.begins, may_start & ~empty, self.works)

    def _report(self, may_start: Value) -> None:
        """Says why nothing is read, if nothing is."""
        activity, walk, pace = self.ports.activity, self.walk, self.pace
        waits = self.works & pace.rested & ~(walk.due | pace.fits)
        reading = Mux(waits, Cause.MEMORY, Cause.BUSY)
        left_over = Mux(may_start, Cause.BUSY, Cause.MEMORY)  # it starts, where nothing is read
        idle = ~self.active & ~self.ports.command.ready & ~self.in_flight.some
        self.m.d.comb += [
            activity.idle.eq(idle),
            activity.cause.eq(Mux(self.active, reading, left_over)),
        ]
