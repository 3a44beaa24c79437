"""The open flow for Gowin's GW2A: yosys, nextpnr-himbaechel-gowin and gowin_pack, all wheels.

nextpnr takes Gowin's wires to be faster than they are, so of the clock by its report DERATING is
taken to be reached.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from vdla.boards import find_module
from vdla.boards.board import Bitstream, Board
from vdla.boards.flows.files import write
from vdla.boards.flows.nextpnr import PLACED, Counted, Family, Files, make_bitstream, planned
from vdla.boards.flows.script import yosys_script
from vdla.boards.flows.slots import fill_slots
from vdla.boards.flows.tools import Progress
from vdla.hw.verilog import NAME
from vdla.isa.config import Config

# LUTs of five inputs and more are two LUTs and a multiplexer, behind which a flip-flop takes a slot
# of its own: 1,400 of them in config nano, and 483 such flip-flops.
SYNTHESIS = "synth_gowin -nowidelut -family gw2a"

# A RAM16SDP4 keeps a block of eight LUTs and six flip-flops to itself, for four bits: 176 of them
# hold the instructions in front of the engines, in config nano. Block RAM gives an entry a cycle
# later, like the register that is there; an entry is never read in the cycle that writes it, which
# yosys doesn't see (hw/fifo.py).
QUEUES = """\
setattr -set ram_style "block" -set no_rw_check 1 *_queue.fifo/m:storage
"""
NEXTPNR = "nextpnr-himbaechel-gowin"
WHEEL = f"yowasp-{NEXTPNR}"
DERATING = 0.8
REASON = "delays of Gowin's wires are some 20 % too short in it"
REGISTERS = ("", "E", "R", "RE", "S", "SE", "C", "CE", "P", "PE")
BLOCK_RAMS = ("SP", "SPX9", "SDPB", "SDPX9B", "DPB", "DPX9B", "pROM", "pROMX9")
CELLS = {  # nextpnr's names of what ``available`` counts, and what each takes of it
    "lut": {"LUT4": 1, "ALU": 1, "RAM16SDP4": 4},  # beside the four that it consists of
    "ff": {"DFF": 1, "RAM16SDP4": 6},
    "dsp": {"MULT9X9": 1, "MULT18X18": 1, "MULT36X36": 4},
    "bram": {"BSRAM": 1},
}
COUNTED: Counted = {  # what a cell of yosys's netlist takes
    **{f"LUT{inputs}": {"lut": 1} for inputs in range(1, 5)},
    "ALU": {"lut": 1},
    "RAM16SDP4": {"lut": 8, "ff": 6},  # nothing else is placed in its block
    **{f"DFF{kind}": {"ff": 1} for kind in REGISTERS},
    "MULT9X9": {"dsp": 1},
    "MULT18X18": {"dsp": 1},
    "MULT36X36": {"dsp": 4},
    **{kind: {"bram": 1} for kind in BLOCK_RAMS},
}


def synthesize(
    board: Board,
    config: Config,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> Bitstream:
    """Makes ``folder/vdla.fs`` and what led to it.

    Raises:
        BoardError: a tool is missing or fails, the design doesn't fit, or misses its clock.
    """
    return make_bitstream(family(board), board, config, folder, progress)


def family(board: Board) -> Family:
    """The flow's part for a GW2A."""
    return Family(
        toolchain="gowin",
        nextpnr=NEXTPNR,
        wheel=WHEEL,
        packer=("GOWIN_PACK", "gowin_pack", WHEEL, ""),
        design=design,
        route=(),
        pack=("-d", die_of(board), "-o", f"{NAME}.part", PLACED),
        bitstream=f"{NAME}.fs",
        counted=COUNTED,
        cells=CELLS,
        move=move,
        derating=DERATING,
        reason=REASON,
    )


def design(board: Board, config: Config) -> tuple[Files, Sequence[str]]:
    """The design's files, by their names, and nextpnr's options for the device."""
    plan = planned(board, config)
    files = {name: plan.files[name] for name in (f"{NAME}.il", f"{NAME}.cst")}
    files[f"{NAME}.ys"] = script()
    options = ["--device", board.device, "--freq", f"{board.clock_hz / 1e6:g}"]
    for option in (f"family={die_of(board)}", f"cst={NAME}.cst"):
        options += ["--vopt", option]
    return files, options


def script() -> str:
    """Maps ``vdla.il`` for Gowin into ``vdla.json``."""
    return yosys_script(SYNTHESIS, before=QUEUES)


def move(netlist: Path) -> None:
    """Makes the most of the device's slots in yosys's netlist (``slots.py``)."""
    design = json.loads(netlist.read_text())
    fill_slots(design["modules"])
    write(netlist.parent, {netlist.name: json.dumps(design)})


def die_of(board: Board) -> str:
    """The name of a board's die in nextpnr's and apycula's databases."""
    result: str = find_module(board.name).DIE
    return result
