"""Cycles of a tile on a board, as the board's own counters have them.

A process that measures has its board by the lease ``board:NAME``, whose value is the board's port.
It reaches the board once, before its first candidate, and keeps the line (``reached.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.boards.board import Board, BoardError
from vdla.boards.connect import find_ports
from vdla.boards.reached import VIRTUAL, forget, reach, reached, resource
from vdla.compiler.search.measurer import RefusalError
from vdla.compiler.targets.accelerator.lower import UOPS
from vdla.compiler.targets.accelerator.search.simulation import Cycles, TileMeter
from vdla.compiler.targets.accelerator.standalone import LayerProgram
from vdla.farm.work import leased
from vdla.isa.config import Config
from vdla.isa.registers import Fault
from vdla.runtime.board.driver import BoardFault, RunLimitError
from vdla.runtime.board.transport import LinkError
from vdla.runtime.devices.board import BoardDevice, OtherBitstreamError
from vdla.runtime.errors import DeviceError

SECONDS = 300.0  # for one candidate; a board that falls silent is noticed much sooner
OTHER_BITSTREAM = (Fault.PROGRAM_ISA, Fault.PROGRAM_CONFIG)  # one was loaded meanwhile


@dataclass(frozen=True, eq=False)
class BoardMeter(TileMeter):
    """Meter of an operator's tiles on a board of the name ``board``."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The board, for this candidate alone."""
        return (resource(self.board),)

    def run(self, built: LayerProgram) -> Cycles:
        """The cycles that the board counts, from START to the end of the program.

        A board that falls silent costs this tile, which may be why; the next one finds the board
        lost unless it answers again.

        Raises:
            ResourceLost: the board doesn't answer.
            RefusalError: its bitstream is for another instruction set or config.
        """
        port = leased(resource(self.board))
        device = _device(self.board, self.config, port)
        try:
            return Cycles("ok", cycles=_cycles(device, built))
        except BoardFault as error:
            if error.fault in OTHER_BITSTREAM:
                forget(self.board, port)
                raise RefusalError(str(error)) from None
            return Cycles("crash", str(error))
        except RunLimitError as error:
            return Cycles("timeout", str(error))
        except LinkError as error:
            forget(self.board, port)
            return Cycles("crash", str(error))
        except DeviceError as error:  # the board's memory is too small
            return Cycles("illegal", str(error))


def _cycles(device: BoardDevice, built: LayerProgram) -> int:
    """The cycles of a program. Of its constants the micro-ops alone are sent, since numbers in
    tensors, whatever they are, change no cycle, and a serial line is slow."""
    dram = device.allocate(built.dram.size, b"")
    uops = built.addresses[UOPS], built.ends[UOPS]
    dram[slice(*uops)] = built.dram[slice(*uops)]
    return device.load(built.program.to_bytes(), dram, [uops])().cycles


# Boards -------------------------------------------------------------------------------------------


def board_ports(board: Board, ports: Sequence[str], virtual: int = 0) -> list[str]:
    """Ports of the boards of a search: the ports named, else all that say they are this board; or
    so many ``virtual`` ones.

    Raises:
        BoardError: ports that don't go with such boards, or no board is found.
    """
    if virtual and ports:
        raise BoardError(f"--virtual: expected no port, found --port {','.join(ports)}")
    if len(set(ports)) < len(ports):
        raise BoardError(f"--port: expected each port once, found {','.join(ports)}")
    if virtual:
        return [VIRTUAL] * virtual
    if board.transport != "axi":
        return [*ports] or find_ports(board)
    if len(ports) > 1:
        raise BoardError(
            f"--port: expected one bitstream, for the board {board.name} that this runs on, found "
            f"{','.join(ports)}; boards beside it measure as workers of a farm"
        )
    return [*ports] or [""]


def check_boards(board: Board, config: Config, ports: Sequence[str]) -> None:
    """Reaches each board once, asks what it is, and lets it go.

    Raises:
        BoardError, LinkError: a board can't be reached, or doesn't answer.
        OtherBitstreamError: its bitstream is for another instruction set or config.
    """
    for port in dict.fromkeys(ports):
        reach(board, config, port).transport.close()


def _device(board: str, config: Config, port: str) -> BoardDevice:
    """A board that this process has, reached before the first candidate of its config.

    Raises:
        ResourceLost: it can't be reached, or doesn't answer.
        RefusalError: its bitstream is for another instruction set or config.
    """
    try:
        return reached(board, config, port)
    except OtherBitstreamError as error:
        raise RefusalError(str(error)) from None
