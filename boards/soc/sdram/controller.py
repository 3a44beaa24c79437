"""Controller of an SDR SDRAM, at the core's clock; the chip has the same one, or twice as fast.

    taken → checked → (PRECHARGE →) ACTIVATE → column commands, one per beat → words

1. docs/timing.md, section 12, says what happens in which cycle; ``numbers.py`` has its numbers
   for a chip and its clocks. ``pads.py`` says when what is shown in a cycle reaches the chip, and
   in which one its first words are seen: as many at a time as the chip has clocks in a cycle.
2. While one request's columns move, the next one's row is opened. With ``requests`` = 1 the next is
   taken when the one at work has given its last command.
3. A beat is one burst of the chip and never leaves a row: beats are aligned.
4. A program that ``begins`` finds every row closed and a refresh just done.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal, Value
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.soc.memory import port
from vdla.boards.soc.sdram.chip import ALL_BANKS, Chip, Command, pins
from vdla.boards.soc.sdram.data import read_words, write_words
from vdla.boards.soc.sdram.numbers import REFRESHES_PUT_OFF, banks, words_of
from vdla.boards.soc.sdram.pads import ONE_CLOCK, Pads
from vdla.boards.soc.sdram.power_up import PowerUp
from vdla.boards.soc.sdram.refresh import Refresh
from vdla.boards.soc.sdram.requests import Place, Requests, Rows
from vdla.boards.soc.sdram.waits import Wait, Waits


class Controller(Component):
    """``memory`` serves beats of ``port_bytes``; ``ready`` once the chip has been set up;
    ``begins`` pulses in cycle 0 of a program.

    Raises:
        BoardError: the chip can't make such beats, or isn't as fast as the clock.
    """

    def __init__(
        self,
        chip: Chip,
        clock_hz: float,
        port_bytes: int,
        tag_bits: int,
        requests: int = 2,
        refreshes_put_off: int = REFRESHES_PUT_OFF,
        pads: Pads = ONE_CLOCK,
    ) -> None:
        self.words = words_of(chip, port_bytes, pads.ratio)
        self.beat_cycles = self.words // pads.ratio
        self.banks = banks(chip, clock_hz, port_bytes, requests, refreshes_put_off, pads)
        self.chip, self.clock_hz, self.ratio = chip, clock_hz, pads.ratio
        self.at_bits = chip.address_bits - (port_bytes - 1).bit_length()
        super().__init__(
            {
                "memory": In(port(self.at_bits, 8 * port_bytes, tag_bits)),
                "pins": Out(pins(chip, pads.ratio)),
                "ready": Out(1),
                "begins": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Two places for requests, the banks' rows and waits, refreshes, and the data's way."""
        m = Module()
        memory, chip = self.memory, self.chip
        self.waits = waits = Waits(m, self.banks)
        self.rows = rows = Rows(m, chip)
        power_up = PowerUp(m, chip, self.clock_hz, self.banks, self.words)
        self.refresh = refresh = Refresh(m, self.banks, waits, power_up.ready, self.begins)
        now, next_ = (
            Place(name, self.at_bits, len(memory.tag), self.words, chip) for name in ("now", "next")
        )
        self.work = work = Requests(m, now, next_, rows, waits)
        self.column = column = Wait(m, "column", self.beat_cycles)
        column.start(work.moves)
        work.command(column.over, memory.write_valid, refresh)
        free = ~next_.full
        if self.banks.requests == 1:
            free &= ~now.full
        m.d.comb += [self.ready.eq(power_up.ready), memory.ready.eq(power_up.ready & free)]
        request = (memory.write, memory.tag, memory.at, memory.count)
        work.go_on(refresh, memory.valid & memory.ready, request)
        refresh.go_on(~now.full, ~now.full & ~next_.full & ~memory.valid)
        waits.precharged(work.bank, work.precharges, refresh.precharges)
        rows.precharged(work.bank, work.precharges, refresh.precharges)
        waits.refreshed(refresh.refreshes)
        power_up.show(self.pins)
        self._show(m, work, refresh)
        self._move(m, work)
        return m

    def _show(self, m: Module, work: Requests, refresh: Refresh) -> None:
        """Shows the cycle's command to the chip; there is at most one."""
        pins, now = self.pins, work.now
        column = now.column << (self.words - 1).bit_length()
        m.d.comb += [pins.enable.eq(1), pins.bank.eq(Mux(work.moves, now.bank, work.bank))]
        commands: tuple[tuple[Value, Value | Command, Value | int], ...] = (
            (work.moves, Mux(now.write, Command.WRITE, Command.READ), column),
            (work.activates, Command.ACTIVATE, work.row),
            (work.precharges, Command.PRECHARGE, 0),
            (refresh.precharges, Command.PRECHARGE, ALL_BANKS),
            (refresh.refreshes, Command.REFRESH, 0),
        )
        for when, command, address in commands:
            with m.If(when):
                m.d.comb += [pins.command.eq(command), pins.address.eq(address)]

    def _move(self, m: Module, work: Requests) -> None:
        """The beats' data, and who they are of."""
        memory, now = self.memory, work.now
        wrote = Signal()
        m.d.comb += [
            memory.write_ready.eq(work.may_write),
            memory.write_tag.eq(now.tag),
            wrote.eq(work.moves & now.write),
            memory.done.eq(wrote & work.ends),
        ]
        write_words(m, self.pins, self.beat_cycles, memory.write_data, wrote)
        marks = (work.moves & ~now.write, work.ends, now.tag)
        read_words(m, self.pins, memory, self.banks.read_cycles, marks)
