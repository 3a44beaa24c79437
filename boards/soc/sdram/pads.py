"""Whether a chip is what a board's pins are for, as amaranth-boards has them."""

from __future__ import annotations

from typing import Any

from vdla.boards.board import BoardError
from vdla.boards.soc.sdram.chip import Chip


def check_pins(board: str, platform: Any, chip: Chip) -> None:
    """Compares a chip with the resource ``sdram`` of a board's platform.

    Raises:
        BoardError: they differ in data pins, byte masks, address pins, or bank pins.
    """
    pads = {part.name: len(part.ios[0].names) for part in platform.resources["sdram", 0].ios}
    expected = {
        "data pins": (pads["dq"], chip.word_bits),
        "byte masks": (pads["dqm"], chip.word_bits // 8),
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
