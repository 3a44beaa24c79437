"""Boards' bitstreams: ``vdla.synth``."""

from __future__ import annotations

from vdla.boards import find_board
from vdla.boards.board import Bitstream
from vdla.boards.flows import find_flow, folder_of
from vdla.names.configs import resolve_on
from vdla.options import Synth
from vdla.options.spelling import takes


@takes(Synth)
def synth(board: str, options: Synth) -> Bitstream:
    """A bitstream for a board, or a project for its vendor's tool; area and timing.

    Raises:
        BoardError: no such board or toolchain, or a tool is missing or fails.
        ConfigError: the config doesn't exist or describes no machine.
    """
    chosen = find_board(board)
    flow = find_flow(chosen, options.toolchain)
    machine = resolve_on(board, options.config, options.settings)
    return flow(chosen, machine, folder_of(chosen, machine, options.out), options.progress)
