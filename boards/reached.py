"""Boards that a process of a farm or of a search has reached, by board and port.

A process reaches a board once and keeps the line for all that it does there, whether it measures
tiles or runs modules. A port is one as ``vdla run --port`` takes it, nothing for a board whose own
processor runs this, or ``virtual`` for the RTL of the whole board.
"""

from __future__ import annotations

from vdla.boards import find_board
from vdla.boards.board import Board
from vdla.boards.connect import connect
from vdla.farm.work import ResourceLost
from vdla.isa.config import Config
from vdla.runtime.devices.board import BoardDevice, OtherBitstreamError
from vdla.support.errors import UserError

VIRTUAL = "virtual"  # in a port's place


def resource(board: str) -> str:
    """The name under which processes have a board to themselves: ``board:ulx3s``."""
    return f"board:{board}"


def reach(board: Board, config: Config, port: str) -> BoardDevice:
    """The board at a port, checked to be one of this instruction set and config.

    Raises:
        BoardError, LinkError: the board can't be reached, or doesn't answer.
        OtherBitstreamError: its bitstream is for another instruction set or config.
    """
    virtual = port == VIRTUAL
    named = None if virtual else port or None
    transport = connect(board, config, port=named, virtual=virtual)
    try:
        return BoardDevice(config, transport)
    except BaseException:
        transport.close()
        raise


# By board and port. A process that works for a farm may outlive a search, and a bitstream.
_devices: dict[tuple[str, str], BoardDevice] = {}


def reached(board: str, config: Config, port: str) -> BoardDevice:
    """A board that this process has, reached before the first use with its config.

    Raises:
        ResourceLost: it can't be reached, or doesn't answer.
        OtherBitstreamError: its bitstream is for another instruction set or config.
    """
    device = _devices.get((board, port))
    if device is not None and device.config == config:
        return device
    forget(board, port)
    try:
        device = reach(find_board(board), config, port)
    except OtherBitstreamError:
        raise
    except UserError as error:
        raise ResourceLost(str(error)) from None
    _devices[board, port] = device
    return device


def forget(board: str, port: str) -> None:
    """Lets a board's line go, if this process has one."""
    if device := _devices.pop((board, port), None):
        device.transport.close()
