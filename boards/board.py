"""Interface of a board to the flows, the driver and the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from vdla.isa.clock import Clock
from vdla.isa.config import Config
from vdla.isa.memory import Memory
from vdla.support.errors import UserError
from vdla.support.install import pip_install


class BoardError(UserError):
    """A board, a toolchain or a fit that isn't what was asked for."""


@contextmanager
def packages(what: str) -> Iterator[None]:
    """Context in which packages of the extra ``boards`` are imported: a missing one is the user's
    to install.

    Raises:
        BoardError: one is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise BoardError(
            f"{what}: expected the package {error.name}, found none; "
            f"install with: {pip_install('boards')}"
        ) from None


@dataclass(frozen=True)
class Board:
    """One board. ``available`` counts what a design may use of its device, by resource.

    ``config`` is the accelerator it gets unless told otherwise, at ``clock_hz``; where a config has
    its own clock there, ``vdla.boards.clocked`` is the board with it. Programs may use
    ``memory_bytes``. ``transport``: "serial", or "axi" where a processor shares its memory.
    ``memory`` is what ``config``'s core has behind its port, in cycles of that clock.
    ``toolchains``, the first by default, make its bitstream. ``host`` is the processor that runs
    the operators left to it, as the compiler calls it: "native" is the machine that compiles.
    ``loader`` is openFPGALoader's name of the board where that isn't ``name``.
    """

    name: str
    title: str
    device: str
    config: str
    clock_hz: float
    memory_bytes: int
    transport: str
    toolchains: tuple[str, ...]
    available: Mapping[str, int] = field(default_factory=dict)
    host: str = "native"
    memory: Memory | None = None
    loader: str = ""


def clock_on(board: Board, config: Config) -> Clock:
    """Origin of the clock that a config's core has on a board: the config's own where it was routed
    for this board and clock, else asked."""
    same = board.clock_hz == config.clock_mhz * 1e6 and config.clock.board == board.name
    return config.clock if same else Clock()


@dataclass(frozen=True)
class Bitstream:
    """Products of a flow: files, and the device's share that is used.

    ``fmax_mhz`` and ``bitstream`` are None where no place-and-route took place, and ``clock``,
    what a config may say of its clock, is an asked one. ``hashed`` names the files in ``folder``
    that are the same whenever inputs and tools are.
    """

    board: Board
    toolchain: str
    config: str
    folder: str
    bitstream: str | None
    hashed: tuple[str, ...]
    fmax_mhz: float | None
    used: Mapping[str, float]
    notes: tuple[str, ...] = ()
    clock: Clock = field(default_factory=Clock)
