"""An SDR SDRAM by its datasheet: holds words, and notes the first command that breaks a rule.

It samples its pins at the end of each cycle, so a controller's word that is at the pin in cycle t
is written at its end, and the first word of a READ at the pin in t is at the pin in t + CAS - 1,
CAS being the latency that MODE sets: the least one for the clock.
Each rule is a value of ``Broken``, with the datasheet's symbol; times are whole clocks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from amaranth import Array, Cat, ClockSignal, Module, Mux, Signal, Value
from amaranth.hdl import Instance
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.soc.sdram.chip import (
    ALL_BANKS,
    MOST_PUT_OFF,
    POWER_UP_REFRESHES,
    Chip,
    Command,
    whole_clocks,
)

LONG_AGO = 1 << 20  # what a timer holds that was never started


class Broken(IntEnum):
    """Rules of the datasheet."""

    NONE = 0
    POWER_UP = 1  # the pause, PRECHARGE ALL, eight REFRESHes and MODE come first, in this order
    MODE = 2  # rows are closed; the clock's CAS latency, the controller's burst, sequential
    OPEN = 3  # ACTIVATE: the bank was closed; READ, WRITE: it is open
    CLOSED = 4  # REFRESH, MODE: every bank is closed
    PRECHARGE_TIME = 5  # tRP
    ACTIVATE_TIME = 6  # tRCD
    ROW_CYCLE = 7  # tRC
    OTHER_ROW = 8  # tRRD
    ROW_OPEN = 9  # tRAS, at least
    ROW_OPEN_MOST = 10  # tRAS, at most
    WRITE_RECOVERY = 11  # tWR, also called tDPL
    REFRESH_TIME = 12  # tRFC: no command before it is over
    MODE_TIME = 13  # tMRD
    REFRESH_RATE = 14  # tREF / rows, with eight put off
    BURST = 15  # a column command into a burst, PRECHARGE of its bank, or a column not aligned
    BUS = 16  # both drive the data pins, or nobody does
    COMMAND = 17  # not one of Command, or auto precharge


class Sdram(Component):
    """``broken`` stays at the first broken rule; ``clock_hz`` is the chip's own. ``storage``: a
    Verilog module that holds the words (``sdram_storage``); without it an Amaranth memory does, for
    chips of few rows."""

    def __init__(self, chip: Chip, clock_hz: float, burst: int, storage: str | None = None) -> None:
        self.chip, self.clock_hz, self.burst, self.storage = chip, clock_hz, burst, storage
        self.cas = chip.cas(clock_hz)
        super().__init__(
            {
                "enable": In(1),
                "command": In(4, init=Command.NOTHING),
                "bank": In(chip.bank_bits),
                "address": In(chip.address_pins),
                "mask": In(chip.word_bits // 8),
                "word_in": In(chip.word_bits),
                "driven": In(1),
                "word_out": Out(chip.word_bits),
                "broken": Out(range(max(Broken) + 1)),
            }
        )

    def join(self, m: Module, pins: Any, domain: str = "sync", late: int = 0) -> None:
        """Brings pins here, through the registers at the pads, which are in a clock domain; words
        that leave the chip are ``late`` clocks on their way."""
        word = self.word_out
        for number in range(late):
            later = Signal.like(word, name=f"late_{number}")
            m.d[domain] += later.eq(word)
            word = later
        m.d[domain] += [
            self.enable.eq(pins.enable),
            self.command.eq(pins.command),
            self.bank.eq(pins.bank),
            self.address.eq(pins.address),
            self.mask.eq(pins.mask),
            self.word_in.eq(pins.word_out),
            self.driven.eq(pins.drive),
            pins.word_in.eq(word),
        ]

    def elaborate(self, platform: object) -> Module:
        """Memory of the chip, its bursts and words, and a check of commands by the rules."""
        m = Module()
        banks = 1 << self.chip.bank_bits
        self.open = Signal(banks)
        self.rows = Array(Signal(self.chip.row_bits, name=f"row_{b}") for b in range(banks))
        self.now = {c: self.command == c for c in Command}
        self.column_command = self.now[Command.READ] | self.now[Command.WRITE]
        self._since(m, banks)
        self._rows(m, banks)
        reads, writes = self._bursts(m)
        self._words(m, reads, writes)
        self._judge(m, banks, reads, writes)
        return m

    # What was ------------------------------------------------------------------------------------

    def _since(self, m: Module, banks: int) -> None:
        """Clocks since the latest command of each kind; per bank where it matters."""
        all_banks = self.address & ALL_BANKS != 0
        here = [self.bank == b for b in range(banks)]
        events = {
            **{f"activate_{b}": self.now[Command.ACTIVATE] & here[b] for b in range(banks)},
            **{
                f"precharge_{b}": self.now[Command.PRECHARGE] & (here[b] | all_banks)
                for b in range(banks)
            },
            **{f"write_{b}": self.now[Command.WRITE] & here[b] for b in range(banks)},
            "activate": self.now[Command.ACTIVATE],
            "column": self.column_command,
            "refresh": self.now[Command.REFRESH],
            "mode": self.now[Command.MODE],
        }
        self.since = {}
        for name, event in events.items():
            clocks = Signal(range(LONG_AGO + 1), init=LONG_AGO, name=f"since_{name}")
            passed = Mux(clocks == LONG_AGO, LONG_AGO, clocks + 1)
            m.d.sync += clocks.eq(Mux(event, 1, passed))
            self.since[name] = clocks
        self.up = Signal(range(LONG_AGO + 1))
        m.d.sync += self.up.eq(Mux(self.up == LONG_AGO, LONG_AGO, self.up + 1))
        self.all_banks, self.here = all_banks, here

    def _rows(self, m: Module, banks: int) -> None:
        for b in range(banks):
            with m.If(self.now[Command.ACTIVATE] & self.here[b]):
                m.d.sync += [self.open[b].eq(1), self.rows[b].eq(self.address)]
            with m.If(self.now[Command.PRECHARGE] & (self.here[b] | self.all_banks)):
                m.d.sync += self.open[b].eq(0)

    def _bursts(self, m: Module) -> tuple[Value, Value]:
        """The word of this cycle's burst: its address, and whether it is read or written."""
        self.word = Signal(range(self.burst + 1), init=self.burst)  # the next of the burst
        self.base = Signal(self.chip.address_bits - 1)
        self.reading = Signal()
        base = Cat(self.address[: self.chip.column_bits], self.bank, self.rows[self.bank])
        with m.If(self.column_command):
            m.d.sync += [
                self.base.eq(base),
                self.word.eq(1),
                self.reading.eq(self.now[Command.READ]),
            ]
        with m.Elif(self.word != self.burst):
            m.d.sync += self.word.eq(self.word + 1)
        self.at = Signal.like(self.base)
        m.d.comb += self.at.eq(Mux(self.column_command, base, self.base + self.word))
        goes_on = ~self.column_command & (self.word != self.burst)
        return (
            self.now[Command.READ] | (goes_on & self.reading),
            self.now[Command.WRITE] | (goes_on & ~self.reading),
        )

    def _words(self, m: Module, reads: Value, writes: Value) -> None:
        """The words themselves; CAS - 1 cycles from a READ's sampling to the pin, less this one."""
        stored = self.word_out
        for number in range(self.cas - 2):
            earlier = Signal.like(stored, name=f"stored_{number}")
            m.d.sync += stored.eq(earlier)
            stored = earlier
        enable = Signal(self.chip.word_bits // 8)
        m.d.comb += enable.eq(Mux(writes, ~self.mask, 0))
        if self.storage:
            m.submodules.words = Instance(
                self.storage,
                p_ADDRESS_BITS=len(self.at),
                p_WORD_BITS=self.chip.word_bits,
                i_clk=ClockSignal(),
                i_at=self.at,
                i_enable=enable,
                i_in=self.word_in,
                o_out=stored,
            )
            return
        m.submodules.words = words = Memory(
            shape=self.chip.word_bits, depth=1 << len(self.at), init=[]
        )
        write, read = words.write_port(granularity=8), words.read_port()
        m.d.comb += [
            write.addr.eq(self.at),
            write.data.eq(self.word_in),
            write.en.eq(enable),
            read.addr.eq(self.at),
            read.en.eq(reads),
            stored.eq(read.data),
        ]

    # The rules -----------------------------------------------------------------------------------

    def _judge(self, m: Module, banks: int, reads: Value, writes: Value) -> None:
        with m.If(self.broken == Broken.NONE):
            for rule, broken in self._rules(m, banks, reads, writes):
                with m.If(broken):
                    m.d.sync += self.broken.eq(rule)

    def _rules(
        self, m: Module, banks: int, reads: Value, writes: Value
    ) -> list[tuple[Broken, Value]]:
        chip, now, since, here = self.chip, self.now, self.since, self.here
        activate, precharge = now[Command.ACTIVATE], now[Command.PRECHARGE]
        settles = now[Command.REFRESH] | now[Command.MODE]
        any_command = ~now[Command.NOTHING]

        def younger(name: str, nanoseconds: float, extra: int = 0) -> Value:
            return since[name] < whole_clocks(nanoseconds, self.clock_hz) + extra

        each: list[tuple[Broken, Value]] = []
        for b in range(banks):
            closes = precharge & (here[b] | self.all_banks) & self.open[b]
            each += [
                (Broken.PRECHARGE_TIME, ((activate & here[b]) | settles)
                 & younger(f"precharge_{b}", chip.precharge)),
                (Broken.ROW_CYCLE, activate & here[b] & younger(f"activate_{b}", chip.row_cycle)),
                (Broken.ACTIVATE_TIME, self.column_command & here[b]
                 & younger(f"activate_{b}", chip.activate)),
                (Broken.ROW_OPEN, closes & younger(f"activate_{b}", chip.row_open)),
                (Broken.ROW_OPEN_MOST, self.open[b]
                 & (since[f"activate_{b}"] > int(chip.row_open_most * self.clock_hz / 1e9))),
                (Broken.WRITE_RECOVERY, closes
                 & younger(f"write_{b}", chip.write_recovery, self.burst - 1)),
                (Broken.OPEN, activate & here[b] & self.open[b]),
                (Broken.OPEN, self.column_command & here[b] & ~self.open[b]),
            ]  # fmt: skip
        burst_bank = self.base[chip.column_bits : chip.column_bits + chip.bank_bits]
        cuts = precharge & (self.all_banks | (self.bank == burst_bank))
        known = Cat(now.values()).any()
        unaligned = (self.address & (self.burst - 1)) != 0
        drives = reads  # the chip, in this cycle
        for number in range(self.cas - 1):
            earlier, drives = drives, Signal(name=f"drives_{number}")
            m.d.sync += drives.eq(earlier)
        return [
            *each,
            (Broken.OTHER_ROW, activate & younger("activate", chip.other_row)),
            (Broken.CLOSED, settles & self.open.any()),
            (Broken.REFRESH_TIME, any_command & younger("refresh", chip.row_cycle)),
            (Broken.MODE_TIME, any_command & (since["mode"] < chip.mode_clocks)),
            (Broken.BURST, (self.column_command | cuts) & (self.word != self.burst)),
            (Broken.BURST, self.column_command & unaligned),
            (Broken.BUS, (drives & self.driven) | (writes & ~self.driven)),
            (Broken.COMMAND, ~known | (any_command & ~self.enable)),
            (Broken.COMMAND, self.column_command & self.all_banks),
            (Broken.MODE, now[Command.MODE]
             & (self.address != (self.cas << 4 | (self.burst - 1).bit_length()))),
            (Broken.POWER_UP, self._out_of_order(m, any_command)),
            (Broken.REFRESH_RATE, self._late(m)),
        ]  # fmt: skip

    def _out_of_order(self, m: Module, any_command: Value) -> Value:
        """Power-up: a pause, PRECHARGE ALL, eight REFRESHes, MODE."""
        now, step = self.now, Signal(range(POWER_UP_REFRESHES + 3))
        self.set_up = step == POWER_UP_REFRESHES + 2
        pause = whole_clocks(self.chip.power_up, self.clock_hz)
        expected = Mux(
            step == 0,
            now[Command.PRECHARGE] & self.all_banks & (self.up >= pause),
            Mux(step <= POWER_UP_REFRESHES, now[Command.REFRESH], now[Command.MODE]),
        )
        with m.If(any_command & ~self.set_up):
            m.d.sync += step.eq(step + 1)
        return any_command & ~self.set_up & ~expected

    def _late(self, m: Module) -> Value:
        """Refreshes that are owed: one per interval since power-up."""
        interval = self.chip.refresh_clocks(self.clock_hz)
        clocks, owed = Signal(range(interval)), Signal(range(MOST_PUT_OFF + 3))
        passes = self.set_up & (clocks == interval - 1)
        m.d.sync += clocks.eq(Mux(passes | ~self.set_up, 0, clocks + 1))
        paid = self.now[Command.REFRESH] & (owed != 0)
        m.d.sync += owed.eq(owed + passes - paid)
        return owed > MOST_PUT_OFF
