"""How a board's design becomes a bitstream, or a project for a vendor's tool."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from vdla.boards.board import Bitstream, Board, BoardError, packages
from vdla.boards.flows.tools import Progress
from vdla.isa.config import Config

Flow = Callable[[Board, Config, Path, Progress], Bitstream]


def find_flow(board: Board, toolchain: str | None) -> Flow:
    """A toolchain of a board; its first one unless one is named.

    Raises:
        BoardError: the board has no such toolchain, or a package that it needs is missing.
    """
    name = toolchain or board.toolchains[0]
    if name not in board.toolchains:
        known = ", ".join(board.toolchains)
        raise BoardError(f"--toolchain: expected {known} for {board.name}, found {name}")
    with packages(f"--toolchain {name}"):
        flow: Flow = importlib.import_module(f"vdla.boards.flows.{name}").synthesize
    return flow
