"""Commands that a chip needs before its first request: a pause, PRECHARGE, eight
REFRESHes, MODE.
"""

from __future__ import annotations

from amaranth import Module, Mux, Signal

from vdla.boards.soc.sdram.chip import (
    ALL_BANKS,
    POWER_UP_REFRESHES,
    Chip,
    Command,
    whole_clocks,
)
from vdla.hw.interfaces import Port
from vdla.isa.memory import Banks
from vdla.support.numbers import ceil_div


class PowerUp:
    """``ready`` once the chip has been set up; until then it shows the commands at the pins."""

    def __init__(self, m: Module, chip: Chip, clock_hz: float, banks: Banks, words: int) -> None:
        """``words``: of the chip in a beat."""
        self.m, self.ready = m, Signal(name="set_up")
        pause = whole_clocks(chip.power_up, clock_hz)
        mode = ceil_div(chip.mode_clocks, banks.clock_ratio)
        self._after = (banks.precharge, banks.refresh_cycles, mode)
        self._wait = Signal(range(max(pause, *self._after)), name="power_up_wait", init=pause - 1)
        self._step = Signal(range(POWER_UP_REFRESHES + 3), name="power_up_step")
        cas = chip.cas(clock_hz * banks.clock_ratio)
        self._mode = cas << 4 | (words - 1).bit_length()  # sequential bursts of a beat

    def show(self, pins: Port) -> None:
        """Shows the step's command when the wait before it is over."""
        m, step, wait = self.m, self._step, self._wait
        precharge, refresh, mode = (cycles - 1 for cycles in self._after)
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.Elif(~self.ready):
            m.d.sync += step.eq(step + 1)
            with m.If(step == 0):
                m.d.comb += [pins.command.eq(Command.PRECHARGE), pins.address.eq(ALL_BANKS)]
                m.d.sync += wait.eq(precharge)
            with m.Elif(step <= POWER_UP_REFRESHES):
                m.d.comb += pins.command.eq(Command.REFRESH)
                m.d.sync += wait.eq(refresh)
            with m.Elif(step == POWER_UP_REFRESHES + 1):
                m.d.comb += [pins.command.eq(Command.MODE), pins.address.eq(self._mode)]
                m.d.sync += wait.eq(mode)
            with m.Else():
                m.d.sync += self.ready.eq(1)
        m.d.comb += pins.mask.eq(Mux(self.ready, 0, ~0))
