"""Boards: one file each, what stands around the core on them, and how bitstreams are made."""

from __future__ import annotations

import importlib
from dataclasses import replace
from types import ModuleType

from vdla.boards.board import Board, BoardError, packages
from vdla.isa.config import Config
from vdla.isa.memory import Memory

MODULES = {  # board's name to its file
    "ulx3s": "ulx3s",
    "colorlight-i9": "colorlight_i9",
    "tang-nano-20k": "tang_nano_20k",
    "pynq-z1": "pynq_z1",
    "pynq-z2": "pynq_z2",
    "arty-z7-20": "arty_z7",
    "ultra96-v2": "ultra96",
}


def find_module(name: str) -> ModuleType:
    """A board's file: ``BOARD``, ``Top`` and ``platform``; imported only now, as it may need
    Amaranth.

    Raises:
        BoardError: there is none of that name, or a package that its file needs is missing.
    """
    if name not in MODULES:
        known = ", ".join(MODULES)
        raise BoardError(
            f"board: expected one of {known}, found {name}; "
            "docs/my-board.md says what another takes"
        )
    with packages(f"board {name}"):
        return importlib.import_module(f"vdla.boards.{MODULES[name]}")


def find_board(name: str) -> Board:
    """A board by its name.

    Raises:
        BoardError: there is none of that name, or a package that its file needs is missing.
    """
    result: Board = find_module(name).BOARD
    return result


def clocked(board: Board, config: Config) -> Board:
    """A board as a config's design makes it: at the config's clock, with the memory in cycles of
    that, where the board's clock is the config's; any other board as it is.

    Raises:
        BoardError: the board can't have that clock, or its memory is none for the config.
    """
    module = find_module(board.name)
    if not hasattr(module, "clocks_of"):
        return board
    memory = module.memory_of(config)
    return replace(board, clock_hz=module.clocks_of(config).hz, memory=memory)


def memory_of(board: Board, config: Config) -> Memory:
    """Memory behind the port of a config's core on a board, in cycles of the core's clock there.

    Raises:
        BoardError: the board's memory can't carry what the core sends, or isn't what its pins are
            for.
    """
    result: Memory = find_module(board.name).memory_of(config)
    return result
