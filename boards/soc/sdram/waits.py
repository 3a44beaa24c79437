"""Waits of commands: timers of the chip, and of each bank.

A wait that is started in cycle t is over from cycle t + its number on, as in docs/timing.md,
section 12. It is a row of ones that is shifted out, so that whether it is over is one bit.
"""

from __future__ import annotations

from amaranth import Array, Cat, Module, Signal, Value

from vdla.isa.memory import Banks


class Wait:
    """One wait of a number of cycles."""

    def __init__(self, m: Module, name: str, cycles: int) -> None:
        self.m, self.cycles = m, cycles
        self.ones = Signal(cycles - 1, name=f"wait_{name}")
        m.d.sync += self.ones.eq(self.ones >> 1)

    @property
    def over(self) -> Value:
        """Whether it is over, or was never started."""
        return ~self.ones[:1].any()

    def start(self, when: Value) -> None:
        """Starts it anew in a cycle."""
        with self.m.If(when):
            self.m.d.sync += self.ones.eq(~0)


class Waits:
    """All waits; ``columns``, ``closes`` and ``opens`` say of each bank whether it may take a
    column command, PRECHARGE and ACTIVATE, as far as its own commands go."""

    def __init__(self, m: Module, banks: Banks) -> None:
        def of_bank(bank: int, name: str) -> Wait:
            return Wait(m, f"{name}_{bank}", getattr(banks, name))

        closes = ("row_open", "read_recovery", "write_recovery")
        opens = ("precharge", "row_cycle")
        names = ("activate", *closes, *opens)
        self.banks = [{name: of_bank(b, name) for name in names} for b in range(banks.count)]
        self.other_row = Wait(m, "other_row", banks.other_row)
        self.refresh = Wait(m, "refresh", banks.refresh_cycles)
        self.read_to_write = Wait(m, "read_to_write", banks.read_to_write)
        self.write_to_read = Wait(m, "write_to_read", banks.write_to_read)
        self.columns = Array(bank["activate"].over for bank in self.banks)
        self.closes = Array(self._over(m, "closes", b, closes) for b in self.banks)
        self.opens = Array(self._over(m, "opens", b, opens) for b in self.banks)
        self.all_close = Cat(self.closes).all() & self.refresh.over
        self.all_open = Cat(self.opens).all() & self.other_row.over & self.refresh.over

    @staticmethod
    def _over(m: Module, name: str, bank: dict[str, Wait], waits: tuple[str, ...]) -> Signal:
        over = Signal(name=name)
        m.d.comb += over.eq(Cat(bank[wait].over for wait in waits).all())
        return over

    def activated(self, bank: Value, when: Value) -> None:
        """ACTIVATE goes to a bank."""
        self.other_row.start(when)
        for number, waits in enumerate(self.banks):
            for name in ("activate", "row_open", "row_cycle"):
                waits[name].start(when & (bank == number))

    def precharged(self, bank: Value, when: Value, everywhere: Value) -> None:
        """PRECHARGE goes to a bank, or to all of them."""
        for number, waits in enumerate(self.banks):
            waits["precharge"].start((when & (bank == number)) | everywhere)

    def moved(self, bank: Value, when: Value, write: Value) -> None:
        """A column command goes to a bank."""
        self.read_to_write.start(when & ~write)
        self.write_to_read.start(when & write)
        for number, waits in enumerate(self.banks):
            here = when & (bank == number)
            waits["read_recovery"].start(here & ~write)
            waits["write_recovery"].start(here & write)

    def refreshed(self, when: Value) -> None:
        """REFRESH goes to the chip."""
        self.refresh.start(when)
