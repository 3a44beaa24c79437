"""Options of the commands about hardware: ``lockstep``, ``synth`` and ``board check``.

Imported by every command, help and listings too, so it imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vdla.options import fields
from vdla.options.common import Progress, Sized, progress
from vdla.options.spelling import Only, UsageError, option

if TYPE_CHECKING:
    from vdla.compiler.frontend.shapes import Shapes
    from vdla.isa.config import Config

NETLISTS = ("synth", "routed")  # of yosys after synthesis, of nextpnr after routing

# Where options count
RANDOM_PROGRAMS = Only("model", given=False)
NO_BOARD = Only("board", given=False)
ON_BOARD = Only("board")
NO_NETLIST = Only("netlist", given=False)
NO_TWIN = Only("virtual", given=False)


@dataclass(frozen=True)
class Lockstep(Sized):
    """Programs that simulator and RTL run side by side: random ones, or a model's.

    With a ``board``, the RTL is its whole design with its memory, and the config its own. With a
    ``netlist`` of it, too, programs run on what is in its bitstream.
    """

    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: paper, or the board's."
    )
    settings: Sequence[str] = fields.settings()
    board: str | None = option(
        None, "--board", typed=str | None, metavar="B",
        help="Run the board's whole design, with its memory.",
    )  # fmt: skip
    netlist: str | None = option(
        None, "--netlist", typed=str | None, metavar="N", only=[ON_BOARD, RANDOM_PROGRAMS],
        help="Run the board's netlist of this step: synth or routed.",
    )  # fmt: skip
    out: Path = option(
        Path("out"), "--out", typed=Path, only=[Only("netlist")],
        help="Folder of the folder that synth has written, or that the netlist goes to.",
    )  # fmt: skip
    programs: int = option(
        100, "--programs", typed=int, only=[RANDOM_PROGRAMS], min=1, help="Random programs to run."
    )
    seed: int = option(
        0, "--seed", typed=int, only=[RANDOM_PROGRAMS], min=0, help="The first program's number."
    )
    model: str | None = option(
        None, "--model", typed=str | None, metavar="MODEL", help="Run a model's program instead."
    )
    coverage: bool = option(
        False, "--coverage", typed=bool, only=[RANDOM_PROGRAMS],
        help="Say which goals the programs have reached.",
    )  # fmt: skip
    memories: int = option(
        3, "--memories", typed=int, only=[RANDOM_PROGRAMS, NO_BOARD], min=1, max=3,
        help="Memories that each program meets; 1 for long runs.",
    )  # fmt: skip
    workers: int = option(
        1, "--workers", typed=int, only=[RANDOM_PROGRAMS, NO_NETLIST], min=1, max=64,
        help="Processes that run programs.",
    )  # fmt: skip
    shapes: Shapes | None = fields.shapes(Only("model"))
    farm: str | None = fields.farm(RANDOM_PROGRAMS, NO_NETLIST)
    folder: Path | None = fields.folder()
    without_encryption: bool = fields.without_encryption()

    def __post_init__(self) -> None:
        """Refuses a netlist that there is none of."""
        if self.netlist not in (None, *NETLISTS):
            raise UsageError(f"--netlist: expected synth or routed, found {self.netlist}")


@dataclass(frozen=True)
class Synth:
    """Options of a board's design: by which toolchain, of which config, and where."""

    toolchain: str | None = option(
        None, "--toolchain", typed=str | None, metavar="T", help="Default: the board's first."
    )
    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: the board's."
    )
    settings: Sequence[str] = fields.settings()
    out: Path = option(Path("out"), "--out", typed=Path, help="Folder for the project's folder.")
    progress: Progress = progress()


@dataclass(frozen=True)
class BoardCheck:
    """Options of a board's first check: how it is reached, its config, where the report goes."""

    board: str = fields.board("The board.", needed=True)
    config: str | Path | Config | None = fields.config(
        None, "A config's name or file; default: the board's."
    )
    settings: Sequence[str] = fields.settings()
    port: str | None = option(
        None, "--port", typed=str | None, only=[NO_TWIN], metavar="PORT",
        help="The board's serial port, or a Zynq's bitstream for PYNQ; default: found.",
    )  # fmt: skip
    virtual: bool = option(
        False, "--virtual", typed=bool,
        help="Check the RTL of the whole board instead: some minutes.",
    )  # fmt: skip
    programs: int = option(
        10, "--programs", typed=int, min=1, max=1000, help="Random programs to run."
    )
    out: Path | None = option(
        None, "--out", typed=Path | None, metavar="FILE",
        help="The report; default: board-check-BOARD.json.",
    )  # fmt: skip
