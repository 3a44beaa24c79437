"""The open flow for 7-series (openXC7): yosys, nextpnr-xilinx, and Project X-Ray's assembler.

The project is written in any case; it runs where nextpnr-xilinx, fasm2frames and xc7frames2bit are
on PATH and two folders are named: PRJXRAY_DB_DIR, X-Ray's database, and CHIPDB, what nextpnr made
of it. ``build.sh`` has the same commands. nextpnr's seed is fixed.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from vdla.boards.board import Bitstream, Board, BoardError
from vdla.boards.flows.files import discard, write
from vdla.boards.flows.fit import check_clock, check_fit
from vdla.boards.flows.project import MADE, SAME, common, finish, to_load
from vdla.boards.flows.script import yosys_script
from vdla.boards.flows.tools import Progress, call, find_yosys, look, versioned
from vdla.boards.flows.xilinx import design
from vdla.boards.flows.yosys import area_in, total
from vdla.hw.verilog import NAME
from vdla.isa.clock import ROUTED, Clock
from vdla.isa.config import Config

COME_FROM = "they come with openXC7: https://github.com/openXC7/toolchain-nix"
SEED = 1
FAMILY = "zynq7"
TOOLS = {  # variable of the environment and program
    "NEXTPNR_XILINX": "nextpnr-xilinx",
    "FASM2FRAMES": "fasm2frames",
    "XC7FRAMES2BIT": "xc7frames2bit",
}
FOLDERS = ("CHIPDB", "PRJXRAY_DB_DIR")


def synthesize(
    board: Board,
    config: Config,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> Bitstream:
    """Writes the project; with the tools, ``folder/vdla.bit`` and ``vdla.bit.bin`` too.

    Raises:
        BoardError: the ports can't carry the config, a tool fails, it doesn't fit, or misses its
            clock.
    """
    missing = missing_tools()
    progress("design", 0, 5)
    discard(folder, *MADE, f"{NAME}.json", f"{NAME}.fasm", f"{NAME}.frames")
    files = project(board, config)
    write(folder, files)
    written = Bitstream(board, "xray", config.name, str(folder), None, tuple(files), None, {})
    if missing:
        return replace(written, notes=(missing, f"with them: {folder}/build.sh"))
    nextpnr = "nextpnr-xilinx"
    tool = versioned(look("NEXTPNR_XILINX", nextpnr) or nextpnr, nextpnr, folder)
    steps = ("synthesis", "place and route", "frames", "bitstream")
    for number, (step, (command, log)) in enumerate(zip(steps, _commands(board), strict=True), 1):
        progress(step, number, 5)
        call(command, folder, log)
        if step == "synthesis":
            used: dict[str, float] = dict(total(area_in(folder)))
            check_fit(board, config, used)
    fmax = frequency(folder / "nextpnr.log")
    check_clock(board, config, fmax, folder / "nextpnr.log")
    bitstream = finish(folder, "xc7frames2bit")
    made = replace(
        written,
        bitstream=bitstream,
        hashed=SAME,
        fmax_mhz=fmax,
        used=used,
        notes=to_load(board, folder),
        clock=Clock(ROUTED, tool, board.name, SEED, round(fmax, 1)),
    )
    progress("done", 5, 5)
    return made


def missing_tools() -> str:
    """Tools and folders missing for a bitstream of the project, in one line; empty if none is."""
    programs = [program for tool in TOOLS.items() if look(*tool) is None for program in tool[1:]]
    missing = ", ".join([*programs, *(name for name in FOLDERS if not os.environ.get(name))])
    return missing and f"{missing}: expected them, found none; {COME_FROM}"


def project(board: Board, config: Config) -> dict[str, str]:
    """All files of the project."""
    return {
        **design(board, config, "Xray"),
        f"{NAME}.ys": yosys_script("synth_xilinx -flatten -abc9 -family xc7"),
        "build.sh": _script(board),
        **common(board, config),
    }


def frequency(log: Path) -> float:
    """MHz that nextpnr found last, after routing.

    Raises:
        BoardError: it found none.
    """
    result = re.findall(r"Max frequency for clock .*?: ([\d.]+) MHz", log.read_text())
    if not result:
        raise BoardError(f"{log}: expected a maximum frequency, found none")
    return float(result[-1])


def _die(board: Board) -> str:
    """The device without its speed: what nextpnr's database is named after."""
    return board.device.partition("-")[0]


def _nextpnr(board: Board) -> list[str]:
    return [
        "--xdc", f"{NAME}.xdc", "--json", f"{NAME}.json", "--fasm", f"{NAME}.fasm",
        "--freq", f"{board.clock_hz / 1e6:g}", "--seed", str(SEED), "--timing-allow-fail",
    ]  # fmt: skip


def _commands(board: Board) -> list[tuple[list[str], str]]:
    """The commands and their logs; fasm2frames' and xc7frames2bit's output are files."""
    chips, database = (os.environ[name] for name in FOLDERS)
    nextpnr, frames, bits = (look(*tool) or tool[1] for tool in TOOLS.items())
    die = _die(board)
    family = f"{database}/{FAMILY}"
    return [
        ([find_yosys(), "-q", f"{NAME}.ys"], "yosys.log"),
        ([nextpnr, "--chipdb", f"{chips}/{die}.bin", *_nextpnr(board)], "nextpnr.log"),
        (
            [frames, "--part", board.device, "--db-root", family, f"{NAME}.fasm", f"{NAME}.frames"],
            "fasm2frames.log",
        ),
        (
            [bits, "--part_file", f"{family}/{board.device}/part.yaml", "--part_name",
             board.device, "--frm_file", f"{NAME}.frames", "--output_file", f"{NAME}.bit"],
            "xc7frames2bit.log",
        ),
    ]  # fmt: skip


def _script(board: Board) -> str:
    die = _die(board)
    family = f"$PRJXRAY_DB_DIR/{FAMILY}"
    return f"""#!/bin/sh
# openXC7. CHIPDB: folder of {die}.bin; PRJXRAY_DB_DIR: prjxray-db.
set -e
cd "$(dirname "$0")"
: "${{CHIPDB:?folder of {die}.bin}}" "${{PRJXRAY_DB_DIR:?folder of prjxray-db}}"
yosys -q {NAME}.ys
nextpnr-xilinx --chipdb "$CHIPDB/{die}.bin" {" ".join(_nextpnr(board))}
fasm2frames --part {board.device} --db-root "{family}" {NAME}.fasm {NAME}.frames
xc7frames2bit --part_file "{family}/{board.device}/part.yaml" --part_name {board.device} \\
    --frm_file {NAME}.frames --output_file {NAME}.bit
"""
