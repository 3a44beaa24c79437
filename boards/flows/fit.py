"""Whether a design fits its device and meets its clock, and what a config that doesn't is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vdla.boards.board import Board, BoardError
from vdla.boards.flows.nearest import nearest
from vdla.isa.config import Config


def check_fit(board: Board, config: Config, used: Mapping[str, float]) -> None:
    """Raises BoardError when a resource isn't enough: which, by how much, and what would fit."""
    excess = over(board.available, used)
    if excess:
        result = nearest(board, config, used)
        raise BoardError(
            f"{board.name}: expected config {config.name} to fit {board.device}, "
            f"found {', '.join(excess)}; nearest that fits: {result.typed if result else 'none'}"
        )


def over(available: Mapping[str, int], used: Mapping[str, float]) -> list[str]:
    """The resources of which more is used than there is, each with both and the difference."""
    return [
        f"{name} {n:,.10g} of {most:,} ({n - most:,.10g} too many)"
        for name, most in available.items()
        if (n := used.get(name, 0)) > most
    ]


def check_clock(board: Board, config: Config, mhz: float, paths: Path) -> None:
    """Raises BoardError when place and route missed the clock; its report has the ``paths``."""
    if mhz < board.clock_hz / 1e6:
        raise BoardError(
            f"{board.name}: expected {board.clock_hz / 1e6:g} MHz, found {mhz:.1f} MHz "
            f"for config {config.name} (paths: {paths})"
        )


def verdict(board: Board, used: Mapping[str, float]) -> str:
    """One line for a design that fits."""
    shares = (f"{name} {n:,.10g} of {board.available[name]:,}" for name, n in used.items())
    return f"fits {board.device}: {', '.join(shares)}"
