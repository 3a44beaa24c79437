"""Refreshes: how many are due, and when they take place (docs/timing.md, 12.7, 12.8)."""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value

from vdla.boards.soc.sdram.chip import MOST_PUT_OFF
from vdla.boards.soc.sdram.waits import Waits
from vdla.isa.memory import Banks


class Refresh:
    """``on_its_way``: no request gets a row. ``starting``: before ``start_cycles`` of a program,
    in which requests are taken, and nothing is done with them. ``precharges`` and ``refreshes`` are
    the commands of this cycle.

    ``up`` says that the chip is set up, ``begins`` that this is cycle 0 of a program, ``empty``
    that no request is at work. A program that begins while one is (of the host's) waits for it, and
    then starts later than ``start_cycles``. Refreshes that are due when a program begins are
    forgotten, but for one: while the core is at rest they take place at once.
    """

    def __init__(self, m: Module, banks: Banks, waits: Waits, up: Value, begins: Value) -> None:
        self.m, self.banks, self.waits, self.up, self.begins = m, banks, waits, up, begins
        self.on_its_way = Signal(name="refresh_on_its_way")
        self.closed = Signal(name="refresh_closed")  # PRECHARGE has gone to all
        self.due = Signal(range(MOST_PUT_OFF + 1), name="refresh_due")
        self.precharges, self.refreshes = Signal(name="precharges_all"), Signal(name="refreshes")
        self.starting = Signal(name="starting")
        self._left = Signal(range(banks.start_cycles), name="start_left")
        self._held = Signal(name="start_held")  # from cycle 1 on

    def go_on(self, now_empty: Value, idle: Value) -> None:
        """``now_empty``: no request is at work; ``idle``: none waits or may be taken, either."""
        m, waits = self.m, self.waits
        turn = self.up & self.on_its_way & now_empty
        m.d.comb += [
            self.precharges.eq(turn & ~self.closed & waits.all_close),
            self.refreshes.eq(turn & self.closed & waits.all_open),
            self.starting.eq(self.begins | self._held),
        ]
        with m.If(self.up & ~self.on_its_way & ~self.starting):
            late = self.due > self.banks.refreshes_put_off
            m.d.sync += self.on_its_way.eq(late | (idle & self.due.any()))
        with m.If(self.precharges):
            m.d.sync += self.closed.eq(1)
        with m.If(self.refreshes):
            m.d.sync += [self.on_its_way.eq(0), self.closed.eq(0)]
        self._count()
        self._start()

    def _count(self) -> None:
        m, interval = self.m, self.banks.refresh_interval
        cycles, passes = Signal(range(interval), name="refresh_cycles"), Signal()
        more = Signal()
        m.d.comb += [
            passes.eq(cycles == interval - 1),
            more.eq(passes & (self.due != MOST_PUT_OFF)),
        ]
        m.d.sync += cycles.eq(Mux(passes, 0, cycles + 1))
        with m.If(more & ~self.refreshes):
            m.d.sync += self.due.eq(self.due + 1)
        with m.If(~passes & self.refreshes & self.due.any()):
            m.d.sync += self.due.eq(self.due - 1)
        with m.If(self.begins):
            m.d.sync += [cycles.eq(1 % interval), self.due.eq(0)]

    def _start(self) -> None:
        """Holds requests for ``start_cycles``, and until the program's first refresh is done."""
        m, left, held = self.m, self._left, self._held
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        with m.If(held & (left == 0) & (self.refreshes | ~self.on_its_way)):
            m.d.sync += held.eq(0)
        with m.If(self.begins):
            m.d.sync += [
                self.on_its_way.eq(1),
                left.eq(max(self.banks.start_cycles - 2, 0)),
                held.eq(self.banks.start_cycles > 1),
            ]
