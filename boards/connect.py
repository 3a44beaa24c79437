"""From a board to the transport that reaches it: a port, mapped memory, or a virtual board."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from vdla.boards import find_module, memory_of
from vdla.boards.board import Board, BoardError
from vdla.isa.config import Config
from vdla.isa.memory import Memory
from vdla.runtime.board.mapped import open_uio
from vdla.runtime.board.overlay import open_pynq
from vdla.runtime.board.serial import SerialTransport, open_line, ports
from vdla.runtime.board.transport import Transport
from vdla.runtime.rtl.bench import Bench

PATIENT = 60.0  # seconds to wait for a virtual board, which takes seconds for milliseconds


def connect(
    board: Board,
    config: Config,
    *,
    port: str | None = None,
    virtual: bool = False,
) -> Transport:
    """A way to reach a board, or its virtual twin.

    ``port`` is a serial port; for a board whose own processor runs this, a bitstream for PYNQ to
    load, or nothing: then Linux's UIO has the core.

    Raises:
        BoardError: no port was named and none is found, a twin was asked for a port, or the
            board's memory is none for the config.
        DeviceError: the port can't be opened, or the twin not be built.
    """
    memory_of(board, config)
    if virtual and port:
        raise BoardError(f"--virtual: expected no port, found --port {port}")
    if virtual:
        return _virtual(board, config)
    if board.transport == "axi":
        return open_pynq(port, board.memory_bytes) if port else open_uio()
    port = port or _find_port(board)
    return SerialTransport(open_line(port), f"{_name(board)} at {port}", board.memory_bytes)


def open_design(board: Board, config: Config) -> tuple[Callable[[], Bench], Memory]:
    """Function that makes benches of a board's whole design, and the memory that it has.

    Raises:
        BoardError: the board's memory isn't in its design, or is none for the config.
        DeviceError: a tool is missing or fails.
    """
    memory = memory_of(board, config)
    if board.transport != "serial":
        raise BoardError(
            f"{_name(board)}: expected a board whose design has the memory's controller, "
            f"found one that reaches memory through its processor"
        )
    from vdla.boards.virtual.core import BoardBench, build_library

    module = find_module(board.name)
    chip, bits, clocks = module.CHIP, module.MULTIPLIER_BITS, module.clocks_of(config)
    library = build_library(config, chip, clocks.hz, bits, pads=clocks.pads)
    return partial(BoardBench, config, library), memory


def find_ports(board: Board) -> list[str]:
    """The serial ports that say they are this board.

    Raises:
        BoardError: none does.
    """
    known = ports()
    matching = [port for port, what in known.items() if board.name in what.lower()]
    if not matching:
        raise _no_port(board, known)
    return matching


def _find_port(board: Board) -> str:
    """The one port that says it is this board."""
    matching = find_ports(board)
    if len(matching) != 1:
        raise _no_port(board, ports())
    return matching[0]


def _no_port(board: Board, known: Mapping[str, str]) -> BoardError:
    """The error where no port, or no single one, is the board's."""
    result = ", ".join(f"{port} ({what})" for port, what in known.items()) or "no serial port"
    return BoardError(f"{_name(board)}: expected --port, or a port of that name, found {result}")


def _name(board: Board) -> str:
    return f"board {board.name}"


def _virtual(board: Board, config: Config) -> Transport:
    from vdla.boards.virtual import VirtualAxiBoard, VirtualSerialBoard

    name = f"virtual {_name(board)}"
    if board.transport == "axi":
        return VirtualAxiBoard(name, config, board.memory_bytes)
    module = find_module(board.name)
    clocks = module.clocks_of(config)
    twin = VirtualSerialBoard(config, module.CHIP, clocks.hz, module.MULTIPLIER_BITS, clocks.pads)
    line = open_line(twin.port)
    return SerialTransport(line, name, board.memory_bytes, answer=PATIENT, owner=twin)
