"""The controller's two places for requests, and what is done there (docs/timing.md, 12.3 to 12.5).

    taken → next → now → a column command for each beat

A request is in CHECK until the row of its bank is known, then in CLOSE or OPEN until that row is
its own, then READY.
"""

from __future__ import annotations

from amaranth import Array, Module, Mux, Signal, Value
from amaranth.lib.enum import Enum

from vdla.boards.soc.memory import COUNT_BITS
from vdla.boards.soc.sdram.chip import Chip
from vdla.boards.soc.sdram.refresh import Refresh
from vdla.boards.soc.sdram.waits import Waits


class State(Enum, shape=2):
    """State of a request, by what it waits for."""

    CHECK = 0  # to know which row of its bank is open
    CLOSE = 1  # PRECHARGE: another one is
    OPEN = 2  # ACTIVATE: none is
    READY = 3  # its column commands


class Place:
    """A request, if ``full``: ``left`` beats from beat ``at`` on."""

    def __init__(self, name: str, at_bits: int, tag_bits: int, words: int, chip: Chip) -> None:
        self.full = Signal(name=f"{name}_full")
        self.state = Signal(State, name=f"{name}_state")
        self.write = Signal(name=f"{name}_write")
        self.tag = Signal(tag_bits, name=f"{name}_tag")
        self.at = Signal(at_bits, name=f"{name}_at")
        self.left = Signal(COUNT_BITS, name=f"{name}_left")
        in_row = chip.column_bits - (words - 1).bit_length()
        bank_end = in_row + chip.bank_bits
        self.column, self.bank, self.row = (
            self.at[:in_row],  # in beats
            self.at[in_row:bank_end],
            self.at[bank_end:],
        )

    def fields(self) -> tuple[Signal, ...]:
        """Signals of a request, in whichever place it is."""
        return self.write, self.tag, self.at, self.left


class Rows:
    """Which row of each bank is open, if one is."""

    def __init__(self, m: Module, chip: Chip) -> None:
        self.m, self.count = m, 1 << chip.bank_bits
        self.open = Signal(self.count)
        self.rows = Array(Signal(chip.row_bits, name=f"row_{b}") for b in range(self.count))

    def judge(self, place: Place) -> tuple[Value, Value]:
        """Whether the bank of a request has its row open, and whether it has any."""
        some = Array(self.open)[place.bank]
        return some & (self.rows[place.bank] == place.row), some

    def activated(self, bank: Value, row: Value, when: Value) -> None:
        """ACTIVATE opens a row."""
        for number in range(self.count):
            with self.m.If(when & (bank == number)):
                self.m.d.sync += [self.open[number].eq(1), self.rows[number].eq(row)]

    def precharged(self, bank: Value, when: Value, everywhere: Value) -> None:
        """PRECHARGE closes one, or all."""
        for number in range(self.count):
            with self.m.If((when & (bank == number)) | everywhere):
                self.m.d.sync += self.open[number].eq(0)


class Requests:
    """The places ``now`` and ``next``. ``moves``: a beat's column command goes in this cycle;
    ``may_write``: it would, if the beat is there; ``ends``: it is the request's last.
    ``precharges`` and ``activates``: the command for ``bank`` and ``row``.
    """

    def __init__(self, m: Module, now: Place, next_: Place, rows: Rows, waits: Waits) -> None:
        self.m, self.now, self.next, self.rows, self.waits = m, now, next_, rows, waits
        self.moves, self.ends = Signal(name="moves"), Signal(name="ends")
        self.may_write = Signal(name="may_write")
        self.precharges, self.activates = Signal(name="precharges"), Signal(name="activates")
        self.bank = Signal.like(now.bank, name="row_bank")
        self.row = Signal.like(now.row, name="row")
        self.leaves_row = Signal()  # the request at work goes on in the next row
        self._for_now = Signal(name="row_for_now")

    def command(self, column_over: Value, write_valid: Value, refresh: Refresh) -> None:
        """The command of this cycle: a column if one may go, and otherwise a row."""
        m, now, waits = self.m, self.now, self.waits
        may = Signal()
        turned = Mux(now.write, waits.read_to_write.over, waits.write_to_read.over)
        m.d.comb += [
            may.eq(
                now.full
                & (now.state == State.READY)
                & column_over
                & turned
                & waits.columns[now.bank]
            ),
            self.may_write.eq(may & now.write),
            self.moves.eq(may & (~now.write | write_valid)),
            self.ends.eq(now.left == 1),
            self.leaves_row.eq(self.moves & ~self.ends & now.column.all()),
        ]
        self._row(refresh)
        waits.moved(now.bank, self.moves, now.write)

    def _row(self, refresh: Refresh) -> None:
        m, now, next_, waits = self.m, self.now, self.next, self.waits
        stays = refresh.on_its_way | refresh.starting
        wants_now, wants_next = self._wants_row(now), self._wants_row(next_) & ~stays
        for_now = self._for_now
        closes = Mux(for_now, now.state, next_.state) == State.CLOSE
        goes = (wants_now | wants_next) & ~self.moves
        m.d.comb += [
            for_now.eq(wants_now),
            self.bank.eq(Mux(for_now, now.bank, next_.bank)),
            self.row.eq(Mux(for_now, now.row, next_.row)),
            self.precharges.eq(goes & closes & waits.closes[self.bank]),
            self.activates.eq(
                goes & ~closes & waits.opens[self.bank] & waits.other_row.over & waits.refresh.over
            ),
        ]
        waits.activated(self.bank, self.activates)
        self.rows.activated(self.bank, self.row, self.activates)

    @staticmethod
    def _wants_row(place: Place) -> Value:
        return place.full & ((place.state == State.CLOSE) | (place.state == State.OPEN))

    def go_on(self, refresh: Refresh, taken: Value, request: tuple[Value, ...]) -> None:
        """Requests go from place to place, and from state to state; one is ``taken``."""
        m, now, next_ = self.m, self.now, self.next
        leaves = self.moves & self.ends
        goes_up = Signal()
        m.d.comb += goes_up.eq(
            (~now.full | leaves) & next_.full & ~refresh.on_its_way & ~refresh.starting
        )
        next_state = self._after(next_, ~self._for_now, self._check_next(refresh))
        next_state = Mux(self.leaves_row | refresh.refreshes, State.CHECK, next_state)
        now_state = self._after(now, self._for_now, self._judged(now))
        with m.If(goes_up):
            m.d.sync += [a.eq(b) for a, b in zip(now.fields(), next_.fields(), strict=True)]
            m.d.sync += [now.full.eq(1), now.state.eq(next_state)]
        with m.Else():
            m.d.sync += now.state.eq(Mux(self.leaves_row, State.CHECK, now_state))
            with m.If(leaves):
                m.d.sync += now.full.eq(0)
            with m.If(self.moves):
                m.d.sync += [now.at.eq(now.at + 1), now.left.eq(now.left - 1)]
        with m.If(taken):
            m.d.sync += [a.eq(b) for a, b in zip(next_.fields(), request, strict=True)]
            m.d.sync += [next_.full.eq(1), next_.state.eq(State.CHECK)]
        with m.Else():
            m.d.sync += next_.state.eq(next_state)
            with m.If(goes_up):
                m.d.sync += next_.full.eq(0)

    def _after(self, place: Place, served: Value, checked: Value) -> Value:
        """The state of a request after this cycle; ``served``: the row command is for it."""
        state = Mux(place.state == State.CHECK, checked, place.state)
        state = Mux(served & self.precharges, State.OPEN, state)
        return Mux(served & self.activates, State.READY, state)

    def _judged(self, place: Place) -> Value:
        """The state in which CHECK leaves a request."""
        own, some = self.rows.judge(place)
        return Mux(own, State.READY, Mux(some, State.CLOSE, State.OPEN))

    def _check_next(self, refresh: Refresh) -> Value:
        """CHECK of the request behind the one at work, which may be at the same bank."""
        now, next_ = self.now, self.next
        own, some = self.rows.judge(next_)
        behind = Mux(own & (now.state == State.READY), State.READY, State.CHECK)
        alone = Mux(own, State.READY, Mux(some, State.CLOSE, State.OPEN))
        same = now.full & (now.bank == next_.bank)
        return Mux(refresh.starting, State.CHECK, Mux(same, behind, alone))
