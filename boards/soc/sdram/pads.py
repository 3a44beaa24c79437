"""Pads between the controller and the chip: their registers, and how long words take.

A command that the controller shows in cycle t is at the chip's pins

    ratio 1     in cycle t + 1: one register, at the pad
    ratio 2     in the first clock of cycle t + 2: ``half_rate.py`` says through which registers

and the chip samples it at the end of that clock. The first word comes CAS latency - 1 clocks later,
and is sampled at the end of its clock; or ``late`` clocks after that, where the board's clock for
the chip lies so late in the core's that the word isn't there any sooner.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vdla.boards.board import BoardError
from vdla.boards.soc.sdram.chip import Chip
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class Pads:
    """``ratio``: clocks of the chip in a cycle of the controller, 1 or 2, and words that it shows
    and sees in one. ``late``: clocks from the one in which the chip shows a word to the one in
    which the word is sampled.
    """

    ratio: int = 1
    late: int = 0

    def word_clock(self, cas: int) -> int:
        """Clocks from the end of the cycle in which a READ is shown to the one from which on the
        register at the pad has its first word."""
        return self.ratio * (self.ratio - 1) + cas + self.late

    def word_cycles(self, cas: int) -> int:
        """Cycles from the one in which a READ is shown to the one in which ``word_in`` has its
        first words: with two in a cycle, the one that ends with both in registers."""
        if self.ratio == 1:
            return 1 + self.word_clock(cas)
        return ceil_div(self.word_clock(cas) + 2, 2)


ONE_CLOCK = Pads()  # the chip's is the core's


def check_pins(board: str, platform: Any, chip: Chip) -> None:
    """Compares a chip with the resource ``sdram`` of a board's platform.

    Raises:
        BoardError: they differ in data pins, byte masks, address pins, or bank pins.
    """
    pads = {part.name: len(part.ios[0].names) for part in platform.resources["sdram", 0].ios}
    masks = chip.word_bits // 8
    expected = {
        "data pins": (pads["dq"], chip.word_bits),
        "byte masks": (pads.get("dqm", masks), masks),  # a board may tie them to a level
        "address pins": (pads["a"], chip.address_pins),
        "bank pins": (pads["ba"], chip.bank_bits),
    }
    wrong = {what: counts for what, counts in expected.items() if counts[0] != counts[1]}
    if wrong:
        pins = ", ".join(f"{of_board} {what}" for what, (of_board, _) in wrong.items())
        needs = ", ".join(str(of_chip) for _, of_chip in wrong.values())
        raise BoardError(
            f"board {board}: expected a memory with {pins}, found {chip.name} with {needs}"
        )
