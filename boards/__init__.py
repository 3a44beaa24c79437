"""Boards: one file each, what stands around the core on them, and how bitstreams are made."""

from __future__ import annotations

import importlib

from vdla.boards.board import Board, BoardError

MODULES = {"ulx3s": "ulx3s"}  # board's name to its file


def find_board(name: str) -> Board:
    """A board by its name; its file is imported only now, since it needs Amaranth.

    Raises:
        BoardError: there is none of that name, or a package that its file needs is missing.
    """
    if name not in MODULES:
        raise BoardError(f"board: expected one of {', '.join(MODULES)}, found {name}")
    try:
        module = importlib.import_module(f"vdla.boards.{MODULES[name]}")
    except ModuleNotFoundError as error:
        raise BoardError(
            f"board {name}: expected the package {error.name}, found none; "
            "install with: pip install 'vdla[boards]'"
        ) from None
    found: Board = module.BOARD
    return found
