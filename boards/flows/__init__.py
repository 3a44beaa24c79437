"""Flows by which a board's design becomes a bitstream, or a project for a vendor's tool."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from vdla.boards.board import Bitstream, Board, BoardError, packages
from vdla.boards.flows.tools import Progress
from vdla.isa.config import Config, load_config

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


def find_netlist(board: Board, config: Config, name: str, folder: Path, progress: Progress) -> Path:
    """A netlist of a board's first flow in ``folder``, the one of yosys or of nextpnr by its name
    there; made unless an earlier run has left it.

    Raises:
        BoardError: the flow makes none, a tool is missing or fails, or the design doesn't fit.
    """
    toolchain = board.toolchains[0]
    with packages(f"--toolchain {toolchain}"):
        from vdla.boards.flows.nextpnr import make_netlist

        flow = importlib.import_module(f"vdla.boards.flows.{toolchain}")
    if not hasattr(flow, "family"):
        raise BoardError(
            f"--netlist: expected a board whose bitstream nextpnr makes, found {board.name}"
        )
    return make_netlist(flow.family(board), board, config, folder, name, progress)


def folder_of(board: Board, config: Config, out: Path) -> Path:
    """Folder of a flow's files, below ``out``."""
    return out / f"{board.name}-{config.name}"


def main(board: Board, arguments: Sequence[str]) -> None:
    """``python -m vdla.boards.FILE [CONFIG] [TOOLCHAIN]``."""
    config = load_config(arguments[0] if arguments else board.config)
    flow = find_flow(board, arguments[1] if len(arguments) > 1 else None)

    def say(what: str, done: int, total: int) -> None:
        print(f"{done}/{total} {what}")

    made = flow(board, config, folder_of(board, config, Path("out")), say)
    print(made.bitstream or made.folder)
    if made.fmax_mhz is not None:
        print(f"{made.fmax_mhz:.1f} MHz")
    if made.used:
        print(dict(made.used))
    print(*made.notes, sep="\n")
