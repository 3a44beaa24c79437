"""Registers between a controller and a chip at twice its clock, in front of those at the pads.

    cycle        t                t + 1            t + 2            t + 3
    controller   shows
    core's                        held
    fast                                  copied           copied
    at the pad                                     first    second

1. What crosses between the clocks goes from one register to another, with nothing between: from
   ``held`` to its copy, and from the words' registers to those of whoever looks at ``word_in``. The
   clocks come from one PLL; each edge of the core's clock is one of the fast clock's, too.
2. A command goes to the pads in the first half of a cycle and NOTHING in the second one. The first
   of two words goes with the command; bank, address, mask and drive stay for both halves.
3. ``half`` is a bit of the core's clock that changes in every cycle. The fast clock's second copy
   of it differs from the first one in the first clock of each copy of what is held.
4. ``word_in`` has two words that came one clock after the other, the first in the low bits, where
   the last clock of a cycle ends. A third register waits if the first word comes with the cycle.
"""

from __future__ import annotations

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib.wiring import Component, In, Out

from vdla.boards.soc.sdram.chip import Chip, Command, pins
from vdla.boards.soc.sdram.pads import Pads

FAST = "fast"  # the domain of the chip's clock
COPIED = ("enable", "command", "bank", "address", "mask", "word_out", "drive")


class HalfRate(Component):
    """``inner`` from the controller, two words at a time; ``outer``, in the domain ``fast``, to the
    registers at the pads."""

    def __init__(self, chip: Chip, cas: int, pads: Pads) -> None:
        self.odd = pads.word_clock(cas) % 2 != 0
        super().__init__({"inner": In(pins(chip, pads.ratio)), "outer": Out(pins(chip))})

    def elaborate(self, platform: object) -> Module:
        """Holds what the controller shows, copies it, and chooses half of it in each clock."""
        m = Module()
        inner, outer = self.inner, self.outer
        copies = {}
        for name in COPIED:
            shown = getattr(inner, name)
            init = Command.NOTHING if name == "command" else 0
            held = Signal(len(shown), name=f"held_{name}", init=init)
            copies[name] = copied = Signal(len(shown), name=f"copied_{name}", init=init)
            m.d.sync += held.eq(shown)
            m.d.fast += copied.eq(held)
        first = self._first(m)
        command, words = copies.pop("command"), copies.pop("word_out")
        bits = len(outer.word_out)
        m.d.comb += [
            *(getattr(outer, name).eq(copied) for name, copied in copies.items()),
            outer.command.eq(Mux(first, command, Command.NOTHING)),
            outer.word_out.eq(Mux(first, words[:bits], words[bits:])),
        ]
        self._words(m)
        return m

    @staticmethod
    def _first(m: Module) -> Signal:
        """Whether this is the first of the two clocks in which something is copied."""
        half, copied, first = Signal(), Signal(2), Signal()
        m.d.sync += half.eq(~half)
        m.d.fast += [copied.eq(Cat(half, copied[0])), first.eq(copied[0] == copied[1])]
        return first

    def _words(self, m: Module) -> None:
        """The two words that came last, or those before the last one."""
        came = [self.outer.word_in]
        for number in range(1 + self.odd):
            later = Signal.like(came[0], name=f"came_{number}")
            m.d.fast += later.eq(came[-1])
            came.append(later)
        m.d.comb += self.inner.word_in.eq(Cat(came[-1], came[-2]))
