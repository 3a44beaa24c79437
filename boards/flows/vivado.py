"""AMD's flow: a complete project, and Vivado where it is on PATH.

The project's files depend on the board and the config alone. Vivado reads ``vdla.v`` and
``vdla.xdc`` as ``vdla.tcl`` says; its reports are where timing and area come from. Its ``vdla.bit``
holds the hour it was made; ``vdla.bit.bin``, made from it here, doesn't.
"""

from __future__ import annotations

import re
from pathlib import Path

from vdla.boards.board import Bitstream, Board, BoardError
from vdla.boards.flows.files import discard, write
from vdla.boards.flows.fit import check_clock, check_fit
from vdla.boards.flows.project import MADE, SAME, common, finish, to_load
from vdla.boards.flows.tools import Progress, call, look
from vdla.boards.flows.xilinx import design, verilog
from vdla.hw.verilog import NAME
from vdla.isa.clock import ROUTED, Clock
from vdla.isa.config import Config

COMES_FROM = (
    "it comes with AMD's Vivado (ML Standard is free of charge): https://www.amd.com/vivado"
)
OPTIONS = ("-mode", "batch", "-nojournal", "-log", "vivado.log", "-source", f"{NAME}.tcl")
TIMING, UTILIZATION = f"{NAME}_timing.rpt", f"{NAME}_utilization_place.rpt"
ROWS = {  # in the report of utilization; 7-series and UltraScale+
    "lut": r"(?:Slice|CLB) LUTs",
    "ff": r"(?:Slice|CLB) Registers",
    "dsp": r"DSPs",
    "bram": r"Block RAM Tile",
}


def synthesize(
    board: Board,
    config: Config,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> Bitstream:
    """Writes the project; with Vivado, ``folder/vdla.bit`` and ``vdla.bit.bin`` too.

    Raises:
        BoardError: the ports can't carry the config, Vivado fails, or the clock is missed.
    """
    vivado = look("VIVADO", "vivado")
    progress("design", 0, 2)
    discard(folder, *MADE, TIMING, UTILIZATION)
    files = project(board, config)
    write(folder, files)
    if vivado is None:
        return _result(
            board, config, folder, tuple(files),
            (f"vivado: expected it, found none; {COMES_FROM}",
             f"with it: cd {folder} && vivado {' '.join(OPTIONS)}"),
        )  # fmt: skip
    progress("Vivado", 1, 2)
    call([vivado, *OPTIONS], folder, "vivado.out")
    made = _result(board, config, folder, SAME, to_load(board, folder), finish(folder, "Vivado"))
    progress("done", 2, 2)
    return made


def project(board: Board, config: Config) -> dict[str, str]:
    """All files of the project."""
    files = design(board, config, "Vivado")
    return {
        f"{NAME}.v": f"// VDLA on {board.title}, config {config.name}, hash {config.hash}.\n"
        f"{verilog(files.pop(f'{NAME}.il'))}",
        **files,
        **common(board, config),
    }


def _result(
    board: Board,
    config: Config,
    folder: Path,
    hashed: tuple[str, ...],
    notes: tuple[str, ...],
    bitstream: str | None = None,
) -> Bitstream:
    used: dict[str, float] = {}
    fmax, clock = None, Clock()
    if bitstream:
        used = utilization(folder / UTILIZATION)
        check_fit(board, config, used)
        fmax = frequency(folder / TIMING, board.clock_hz)
        check_clock(board, config, fmax, folder / TIMING)
        clock = Clock(ROUTED, _tool(folder), board.name, reached_mhz=round(fmax, 1))
    return Bitstream(
        board, "vivado", config.name, str(folder), bitstream, hashed, fmax, used, notes, clock
    )


def _tool(folder: Path) -> str:
    """Vivado with the version that its log begins with, if it does."""
    version = re.search(r"Vivado v([\w.]+)", (folder / "vivado.out").read_text())
    return f"vivado {version[1]}" if version else "vivado"


def utilization(report: Path) -> dict[str, float]:
    """Resources that ``report_utilization`` says are used.

    Raises:
        BoardError: it says nothing of a resource.
    """
    text, used = report.read_text(), {}
    for name, row in ROWS.items():
        result = re.search(rf"^\|\s*{row}\*?\s*\|\s*([\d.]+)", text, re.MULTILINE)
        if result is None:
            raise BoardError(f"{report}: expected a row {row}, found none")
        used[name] = float(result[1])
    return used


def frequency(report: Path, clock_hz: float) -> float:
    """MHz that ``report_timing_summary``'s worst slack leaves.

    Raises:
        BoardError: it has no worst slack.
    """
    result = re.search(r"WNS\(ns\).*\n[\s-]+\n\s*(-?[\d.]+)", report.read_text())
    if result is None:
        raise BoardError(f"{report}: expected a worst negative slack, found none")
    return 1e3 / (1e9 / clock_hz - float(result[1]))
