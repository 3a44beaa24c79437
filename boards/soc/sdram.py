"""Controller of an SDR SDRAM with CAS latency 2, at the core's clock.

    request → (precharge → activate) → column commands, one per beat → data, CAS + 3 cycles later

1. Every pin passes one register at the pad: what is shown in cycle t is at the chip in t + 1, and
   the first word of a read shown in t is seen in t + 1 + CAS.
2. One request at a time; the next is taken in the cycle after the last column command. A row stays
   open until another of its bank is asked for or a refresh is due.
3. A beat is one burst of the chip, ``port_bytes`` / 2 words, and never leaves a row: beats are
   aligned. A column command comes every so many cycles; a write waits for its data.
4. What a command must wait for has a timer (``_times``), started by the command before; ``Chip``
   has the figures. One timer serves all banks, so some waits are longer than the chip asks for.
5. Every refresh interval one more refresh is due; it goes before the next request. Requests are
   short against ``MOST_DUE`` intervals: at most the core's ``burst_beats``, or the bridge's BURST.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from math import ceil

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import Component, In, Out, Signature

from vdla.boards.soc.memory import COUNT_BITS, port

CAS = 2  # clocks from a read command to its first word, by the chip's count
ALL_BANKS = 1 << 10  # A10 of PRECHARGE
POWER_UP_REFRESHES = 8
MOST_DUE = 7  # refreshes put off; the chip allows eight


def whole_clocks(nanoseconds: float, clock_hz: float) -> int:
    """The least number of clocks that last ``nanoseconds``."""
    return ceil(nanoseconds * clock_hz / 1e9 - 1e-6)


@dataclass(frozen=True)
class Chip:
    """An SDRAM by its datasheet: sizes in bits, times in nanoseconds.

    ``cas2_mhz``: the fastest clock at CAS latency 2. ``access``, ``hold``: output valid after the
    clock, and until after the next; ``setup``, ``keep``: of its inputs, before and after.
    """

    name: str
    row_bits: int
    column_bits: int
    bank_bits: int
    word_bits: int
    power_up: float
    refresh_ms: float
    precharge: float  # tRP
    activate: float  # tRCD
    row_open: float  # tRAS, at least
    row_open_most: float  # tRAS, at most
    row_cycle: float  # tRC, also tRFC
    other_row: float  # tRRD
    write_recovery: float  # tWR, tDPL
    mode_clocks: int  # tMRD
    cas2_mhz: float
    access: float
    hold: float
    setup: float
    keep: float

    @property
    def address_pins(self) -> int:
        """A10 of PRECHARGE is one of them, however few the rows."""
        return max(self.row_bits, self.column_bits, 11)

    @property
    def address_bits(self) -> int:
        """Bits of a byte's address."""
        word = (self.word_bits // 8 - 1).bit_length()
        return self.row_bits + self.bank_bits + self.column_bits + word

    @property
    def nbytes(self) -> int:
        """What it holds."""
        return 1 << self.address_bits

    def refresh_clocks(self, clock_hz: float) -> int:
        """From one refresh to the next."""
        return int(self.refresh_ms * 1e6 / (1 << self.row_bits) * clock_hz / 1e9)


AS4C16M16SA = Chip(  # Alliance Memory AS4C16M16SA-7, rev. 3.0 (March 2015), table 16
    name="AS4C16M16SA-7",
    row_bits=13,
    column_bits=9,
    bank_bits=2,
    word_bits=16,
    power_up=200_000,
    refresh_ms=64,
    precharge=21,
    activate=21,
    row_open=42,
    row_open_most=100_000,
    row_cycle=63,
    other_row=14,
    write_recovery=14,
    mode_clocks=2,
    cas2_mhz=100,
    access=6,
    hold=2.5,
    setup=1.5,
    keep=0.8,
)


class Command(IntEnum):
    """cs, ras, cas, we as the chip wants them: lowest bit we, all active low."""

    MODE = 0b0000
    REFRESH = 0b0001
    PRECHARGE = 0b0010
    ACTIVATE = 0b0011
    WRITE = 0b0100
    READ = 0b0101
    NOTHING = 0b0111


def pins(chip: Chip) -> Signature:
    """What goes to the pads' registers, and ``words_in``, which comes from them."""
    return Signature(
        {
            "enable": Out(1),  # CKE
            "command": Out(4, init=Command.NOTHING),  # cs, ras, cas, we
            "bank": Out(chip.bank_bits),
            "address": Out(chip.address_pins),
            "mask": Out(chip.word_bits // 8),
            "word_out": Out(chip.word_bits),
            "drive": Out(1),
            "word_in": In(chip.word_bits),
        }
    )


class State(Enum, shape=3):
    """What the controller is at."""

    POWER_UP = 0
    IDLE = 1
    CLOSE = 2  # all rows, before a refresh
    REFRESH = 3
    ROW = 4
    COLUMNS = 5


class Controller(Component):
    """``memory`` serves beats of ``port_bytes``; ``ready`` once the chip has been set up."""

    def __init__(self, chip: Chip, clock_hz: float, port_bytes: int, tag_bits: int) -> None:
        self.words = 8 * port_bytes // chip.word_bits
        if self.words not in (1, 2, 4, 8):
            raise ValueError(f"port_bytes: expected 1, 2, 4 or 8 words, found {self.words}")
        if clock_hz > chip.cas2_mhz * 1e6:
            raise ValueError(f"clock: expected at most {chip.cas2_mhz} MHz, found {clock_hz / 1e6}")
        self.chip, self.clock_hz = chip, clock_hz
        self.at_bits = chip.address_bits - (port_bytes - 1).bit_length()
        super().__init__(
            {
                "memory": In(port(self.at_bits, 8 * port_bytes, tag_bits)),
                "pins": Out(pins(chip)),
                "ready": Out(1),
            }
        )

    def _times(self) -> dict[str, int]:
        """What commands wait for, in clocks from the command that starts it."""
        chip, clocks = self.chip, partial(whole_clocks, clock_hz=self.clock_hz)
        return {
            "power_up": clocks(chip.power_up),
            "precharge": clocks(chip.precharge),
            "activate": clocks(chip.activate),
            "refresh": clocks(chip.row_cycle),
            "mode": chip.mode_clocks,
            "row_open": clocks(chip.row_open),
            "row_cycle": clocks(max(chip.row_cycle, chip.other_row)),
            "column": self.words,
            "data": self.words - 1 + max(clocks(chip.write_recovery), 1),  # to a PRECHARGE
            "turn": CAS + self.words + 1,  # from READ to WRITE: the bus has to be free
        }

    def elaborate(self, platform: object) -> Module:
        """A state for power-up, for refreshing, for opening a row and for the bursts in it."""
        m = Module()
        self.state = Signal(State)
        banks = 1 << self.chip.bank_bits
        self.open = Signal(banks)  # whether a row of the bank is open, and which
        self.rows = Array(Signal(self.chip.row_bits, name=f"row_{b}") for b in range(banks))
        self._make_timers(m)
        refresh_due = self._refresh_due(m)
        self.write, self.tag = Signal(), Signal.like(self.memory.tag)
        self.at, self.left = Signal(self.at_bits), Signal(COUNT_BITS)
        m.d.comb += [self.pins.enable.eq(1), self.pins.mask.eq(Mux(self.ready, 0, ~0))]
        with m.Switch(self.state):
            with m.Case(State.POWER_UP):
                self._power_up(m)
            with m.Case(State.IDLE):
                self._idle(m, refresh_due)
            with m.Case(State.CLOSE), m.If(self._over("data", "row_open", "activate")):
                self._show(m, Command.PRECHARGE, ALL_BANKS, starts=("precharge",))
                m.d.sync += [self.open.eq(0), self.state.eq(State.REFRESH)]
            with m.Case(State.REFRESH), m.If(self._over("precharge", "row_cycle")):
                self._show(m, Command.REFRESH, starts=("refresh",))
                m.d.comb += self.refreshed.eq(1)
                m.d.sync += self.state.eq(State.IDLE)
            with m.Case(State.ROW):
                self._row(m)
            with m.Case(State.COLUMNS):
                self._columns(m)
        self._write_data(m)
        self._read_data(m)
        return m

    # Commands ----------------------------------------------------------------------------------

    def _show(
        self, m: Module, command: Command, address: Value | int = 0, starts: tuple[str, ...] = ()
    ) -> None:
        """Shows a command to the chip and starts what the next ones wait for."""
        m.d.comb += [self.pins.command.eq(command), self.pins.address.eq(address)]
        for name in starts:
            m.d.sync += self.timers[name].eq(self._times()[name] - 1)

    def _over(self, *names: str) -> Value:
        """Whether these waits are over."""
        return ~Cat(self.timers[name] != 0 for name in names).any()

    def _make_timers(self, m: Module) -> None:
        self.timers = {
            name: Signal(
                range(clocks), init=clocks - 1 if name == "power_up" else 0, name=f"wait_{name}"
            )
            for name, clocks in self._times().items()
        }
        for timer in self.timers.values():
            with m.If(timer != 0):
                m.d.sync += timer.eq(timer - 1)

    def _refresh_due(self, m: Module) -> Value:
        interval = self.chip.refresh_clocks(self.clock_hz)
        clocks, due = Signal(range(interval)), Signal(range(MOST_DUE + 1))
        self.refreshed, passes = Signal(), Signal()
        m.d.comb += passes.eq(clocks == interval - 1)
        m.d.sync += [
            clocks.eq(Mux(passes, 0, clocks + 1)),
            due.eq(due + (passes & (due != MOST_DUE)) - (self.refreshed & (due != 0))),
        ]
        return due != 0

    def _power_up(self, m: Module) -> None:
        """Datasheet, initialization: a pause, PRECHARGE, eight REFRESHes, MODE."""
        step = Signal(range(POWER_UP_REFRESHES + 2))
        waits = ("power_up", "precharge", "refresh", "mode")
        burst = (self.words - 1).bit_length()  # sequential, 2**burst words
        with m.If(self._over(*waits)):
            m.d.sync += step.eq(step + 1)
            with m.If(step == 0):
                self._show(m, Command.PRECHARGE, ALL_BANKS, starts=("precharge",))
            with m.Elif(step <= POWER_UP_REFRESHES):
                self._show(m, Command.REFRESH, starts=("refresh",))
            with m.Else():
                self._show(m, Command.MODE, CAS << 4 | burst, starts=("mode",))
                m.d.sync += [self.ready.eq(1), self.state.eq(State.IDLE)]

    def _idle(self, m: Module, refresh_due: Value) -> None:
        memory = self.memory
        free = self._over("mode", "refresh")
        m.d.comb += memory.ready.eq(free & ~refresh_due)
        with m.If(free & refresh_due):
            m.d.sync += self.state.eq(State.CLOSE)
        with m.Elif(free & memory.valid):
            m.d.sync += [
                self.write.eq(memory.write),
                self.tag.eq(memory.tag),
                self.at.eq(memory.at),
                self.left.eq(memory.count),
                self.state.eq(State.ROW),
            ]

    # One request -------------------------------------------------------------------------------

    def _split(self) -> tuple[Value, Value, Value]:
        """The beat's column (of its first word), bank and row."""
        in_row = self.chip.column_bits - (self.words - 1).bit_length()
        bank_end = in_row + self.chip.bank_bits
        return self.at[:in_row], self.at[in_row:bank_end], self.at[bank_end:]

    def _row(self, m: Module) -> None:
        """Opens the request's row."""
        _, bank, row = self._split()
        is_open = Array(self.open)[bank]
        m.d.comb += self.pins.bank.eq(bank)
        with m.If(is_open & (self.rows[bank] == row)):
            m.d.sync += self.state.eq(State.COLUMNS)
        with m.Elif(is_open), m.If(self._over("data", "row_open", "activate")):
            self._show(m, Command.PRECHARGE, starts=("precharge",))
            m.d.sync += is_open.eq(0)
        with m.Elif(self._over("precharge", "row_cycle")):
            self._show(m, Command.ACTIVATE, row, starts=("activate", "row_open", "row_cycle"))
            m.d.sync += [is_open.eq(1), self.rows[bank].eq(row)]

    def _columns(self, m: Module) -> None:
        """A column command per beat."""
        memory = self.memory
        column, bank, _ = self._split()
        address = column << (self.words - 1).bit_length()
        go, ends = Signal(), Signal()
        m.d.comb += [
            self.pins.bank.eq(bank),
            memory.write_ready.eq(self.write & self._over("activate", "column", "turn")),
            go.eq(
                Mux(
                    self.write,
                    memory.write_valid & memory.write_ready,
                    self._over("activate", "column"),
                )
            ),
            ends.eq(self.left == 1),
            memory.done.eq(go & self.write & ends),
        ]
        with m.If(go):
            m.d.sync += [self.at.eq(self.at + 1), self.left.eq(self.left - 1)]
            with m.If(ends):
                m.d.sync += self.state.eq(State.IDLE)
            with m.Elif(column.all()):
                m.d.sync += self.state.eq(State.ROW)
            with m.If(self.write):
                self._show(m, Command.WRITE, address, starts=("column", "data"))
            with m.Else():
                self._show(m, Command.READ, address, starts=("column", "data", "turn"))

    def _write_data(self, m: Module) -> None:
        """The first word goes with the command, the others in the cycles after."""
        pins, memory, bits = self.pins, self.memory, self.chip.word_bits
        rest = Signal((self.words - 1) * bits)
        more = Signal(range(self.words))
        taken = memory.write_valid & memory.write_ready
        m.d.comb += [
            pins.drive.eq(taken | (more != 0)),
            pins.word_out.eq(Mux(taken, memory.write_data[:bits], rest[:bits])),
        ]
        with m.If(taken):
            m.d.sync += [rest.eq(memory.write_data[bits:]), more.eq(self.words - 1)]
        with m.Elif(more != 0):
            m.d.sync += [rest.eq(rest >> bits), more.eq(more - 1)]

    def _read_data(self, m: Module) -> None:
        """A beat's last word is seen CAS + ``words`` cycles after its command."""
        memory, bits = self.memory, self.chip.word_bits
        read = (self.pins.command == Command.READ) & (self.state == State.COLUMNS)
        mark = Cat(read, self.left == 1, self.tag)
        for stage in range(CAS + self.words):
            later = Signal(len(mark), name=f"coming_{stage}")
            m.d.sync += later.eq(mark)
            mark = later
        words = Signal(len(memory.read_data))
        m.d.sync += words.eq(Cat(words[bits:], self.pins.word_in))
        m.d.sync += Cat(memory.read_valid, memory.read_last, memory.read_tag).eq(mark)
        with m.If(mark[0]):
            m.d.sync += memory.read_data.eq(Cat(words[bits:], self.pins.word_in))
