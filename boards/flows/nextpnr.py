"""Flows by yosys and nextpnr, for every family of devices that nextpnr knows.

The files that go in depend on the config alone and nextpnr's seed is fixed, so the same inputs and
tools give the same bitstream, byte for byte. It is written last, and whole.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vdla.boards import clocked, find_module, memory_of
from vdla.boards.board import Bitstream, Board
from vdla.boards.flows.files import discard, write
from vdla.boards.flows.fit import check_clock, check_fit
from vdla.boards.flows.tools import Progress, call, find, find_yosys, versioned
from vdla.boards.flows.yosys import Area, Flat, total, unit_of
from vdla.hw.verilog import NAME
from vdla.isa.clock import ROUTED, Clock
from vdla.isa.config import Config

SEED = 1
MAPPED, PLACED = f"{NAME}.json", f"{NAME}.routed.json"  # netlists: yosys's, and nextpnr's
ROUTE = ("--seed", str(SEED), "--timing-allow-fail", "--report", "report.json")

Files = Mapping[str, str | bytes]
Counted = Mapping[str, Mapping[str, int]]  # cells of yosys's netlist: what each takes


@dataclass(frozen=True)
class Family:
    """Part of a flow that differs between families of devices.

    ``design`` makes a design's files, by their names, and nextpnr's options for the device;
    ``move`` changes yosys's netlist, a file. ``wheel`` brings nextpnr, and ``packer`` is the
    variable, the name, the wheel and the wheel's prefix of the tool that makes the bitstream, whose
    arguments are ``pack``: they name ``vdla.part``, which becomes ``bitstream``. ``counted`` says
    what cells of the netlist take, and ``cells`` what nextpnr's report calls that.
    ``derating`` is the share of the clock by nextpnr's report that is taken to be reached, and
    ``reason`` says why that isn't all of it.
    """

    toolchain: str
    nextpnr: str
    wheel: str
    packer: tuple[str, str, str, str]
    design: Callable[[Board, Config], tuple[Files, Sequence[str]]]
    route: Sequence[str]
    pack: Sequence[str]
    bitstream: str
    counted: Counted
    cells: Mapping[str, Mapping[str, int]]
    move: Callable[[Path], None] = lambda netlist: None
    derating: float = 1.0
    reason: str = ""


def make_bitstream(
    family: Family, board: Board, config: Config, folder: Path, progress: Progress
) -> Bitstream:
    """Makes the bitstream in ``folder``, and what leads to it.

    Raises:
        BoardError: a tool is missing or fails, the design doesn't fit, or misses its clock.
    """
    board = clocked(board, config)
    find_yosys()
    nextpnr, packer = _find_nextpnr(family), find(*family.packer)
    discard(folder, family.bitstream)
    progress("design", 0, 4)
    files, options = family.design(board, config)
    progress("synthesis", 1, 4)
    _synthesize(family, files, folder)
    check_fit(board, config, synthesized(folder / MAPPED, family.counted))
    progress("place and route", 2, 4)
    tool = versioned(nextpnr, family.nextpnr, folder)
    _route(family, nextpnr, options, folder)
    result = _result(family, board, config, folder, tool)
    progress("bitstream", 3, 4)
    call([packer, *family.pack], folder, f"{family.packer[1]}.log")
    os.replace(folder / f"{NAME}.part", folder / family.bitstream)
    progress("done", 4, 4)
    return result


def make_netlist(
    family: Family, board: Board, config: Config, folder: Path, name: str, progress: Progress
) -> Path:
    """The netlist MAPPED or PLACED in ``folder``: what an earlier run left there, if it was made of
    the same design, else made now.

    Raises:
        BoardError: a tool is missing or fails, or the design doesn't fit.
    """
    board = clocked(board, config)
    progress("design", 0, 2)
    files, options = family.design(board, config)
    if not all(_holds(folder / each, content) for each, content in files.items()):
        discard(folder, MAPPED, PLACED)
    progress("synthesis", 1, 2)
    if not (folder / MAPPED).exists():
        _synthesize(family, files, folder)
        check_fit(board, config, synthesized(folder / MAPPED, family.counted))
    if name == PLACED and not (folder / PLACED).exists():
        progress("place and route", 1, 2)
        _route(family, _find_nextpnr(family), options, folder)
    progress("done", 2, 2)
    return folder / name


def _find_nextpnr(family: Family) -> str:
    variable = family.nextpnr.upper().replace("-", "_")
    return find(variable, family.nextpnr, family.wheel)


def _holds(path: Path, content: str | bytes) -> bool:
    """Whether a file is there with this content."""
    wanted = content.encode() if isinstance(content, str) else content
    return path.is_file() and path.read_bytes() == wanted


def _synthesize(family: Family, files: Files, folder: Path) -> None:
    """Makes yosys's netlist; a run that is stopped leaves none."""
    discard(folder, MAPPED, PLACED)
    write(folder, files)
    try:
        call([find_yosys(), "-q", f"{NAME}.ys"], folder, "yosys.log")
        family.move(folder / MAPPED)
    except BaseException:
        discard(folder, MAPPED)
        raise


def _route(family: Family, nextpnr: str, options: Sequence[str], folder: Path) -> None:
    """Makes nextpnr's netlist and its report."""
    discard(folder, PLACED)
    part = f"{PLACED}.part"
    written = ("--json", MAPPED, "--write", part)
    call([nextpnr, *options, *ROUTE, *written, *family.route], folder, "nextpnr.log")
    os.replace(folder / part, folder / PLACED)


def planned(board: Board, config: Config) -> Any:
    """Amaranth's plan of a board's design: its files.

    Raises:
        BoardError: the board's memory isn't one for the config.
    """
    module = find_module(board.name)
    memory_of(board, config)
    return module.platform().build(module.Top(config), name=NAME, do_build=False, emit_src=False)


def synthesized(netlist: Path, counted: Counted) -> dict[str, float]:
    """Resources that yosys's netlist uses, as nextpnr will count them."""
    used = total(area(Flat(json.loads(netlist.read_text())["modules"]), counted))
    return {name: used[name] for takes in counted.values() for name in takes}


def area(flat: Flat, counted: Counted) -> Area:
    """LUTs, flip-flops, multipliers and block RAMs per unit, as nextpnr will count them."""
    result: Area = {}
    for path, kind, _, _ in flat.cells:
        count = result.setdefault(unit_of(path), Counter())
        count.update(counted.get(kind, {}))
    return result


def _core_mhz(board: Board, achieved: float, constraint: float = 0) -> float:
    """The core's clock, in MHz, at which one of the design's clocks would be as fast as it can be:
    one that is constrained to more than the core's is faster than that in proportion."""
    return achieved / max(1.0, constraint / (board.clock_hz / 1e6))


def _result(family: Family, board: Board, config: Config, folder: Path, tool: str) -> Bitstream:
    report = json.loads((folder / "report.json").read_text())
    use = report["utilization"]
    reported = min(_core_mhz(board, **clock) for clock in report["fmax"].values())
    achieved = reported * family.derating
    check_clock(board, config, achieved, folder / "nextpnr.log")
    used = {
        name: sum(number * use[cell]["used"] for cell, number in cells.items())
        for name, cells in family.cells.items()
    }
    bitstream = folder / family.bitstream
    return Bitstream(
        board=board,
        toolchain=family.toolchain,
        config=config.name,
        folder=str(folder),
        bitstream=str(bitstream),
        hashed=(family.bitstream,),
        fmax_mhz=achieved,
        used=used,
        notes=(
            *_derated(family, reported),
            f"to load it: openFPGALoader -b {board.loader or board.name} {bitstream}",
        ),
        clock=Clock(ROUTED, tool, board.name, SEED, round(achieved, 1)),
    )


def _derated(family: Family, reported: float) -> tuple[str, ...]:
    """Note of the share of nextpnr's clock that counts, where that isn't all of it."""
    if family.derating == 1:
        return ()
    return (f"nextpnr reports {reported:.1f} MHz, {family.derating:.0%} count: {family.reason}",)
