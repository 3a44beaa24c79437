"""Explanation of a run: what stays on the host by its causes, beside the accelerator's cycles."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.analysis.causes import Cause, causes
from vdla.analysis.profile import Profile
from vdla.boards import clocked
from vdla.boards.board import Board, clock_on
from vdla.isa.clock import at_clock
from vdla.isa.config import Config
from vdla.runtime.module import Module


@dataclass(frozen=True)
class Explanation:
    """Causes, what costs most first, and the cycles of the accelerator's own programs.

    ``clock_mhz`` is the accelerator's, ``clock_source`` where it comes from: "routed", "estimated"
    or "asked".
    """

    causes: list[Cause]
    cycles: int
    clock_mhz: float
    clock_source: str

    @property
    def at_clock(self) -> str:
        """The clock behind cycles: ``at 200 MHz (asked)``."""
        return at_clock(self.clock_mhz, self.clock_source)


def explanation(
    module: Module, profile: Profile, config: Config, board: Board | None = None
) -> Explanation:
    """The explanation of a module's run.

    Args:
        module: as it was compiled, with the reasons of its placement.
        profile: of its steps.
        config: the accelerator's, whose clock counts unless there is a board.
        board: what it runs on.
    """
    board = clocked(board, config) if board else None
    clock = board.clock_hz if board else config.clock_mhz * 1e6
    return Explanation(
        causes(module.metadata["placement"], profile, clock),
        sum(step.cycles or 0 for step in profile.steps),
        clock / 1e6,
        (clock_on(board, config) if board else config.clock).source,
    )
