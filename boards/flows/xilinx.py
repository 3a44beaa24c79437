"""A board's design for AMD's devices: elaborated on Amaranth's platform, and as Verilog.

Everything depends on the board and the config alone: no dates, no paths, no source locations.
"""

from __future__ import annotations

from vdla.boards import find_module
from vdla.boards.board import Board, packages
from vdla.boards.flows.files import text
from vdla.boards.flows.tools import find_yosys
from vdla.boards.zynq import check
from vdla.hw.verilog import NAME, SCRIPT, from_rtlil
from vdla.isa.config import Config

TEMPLATES = {  # Amaranth's files that are taken, by toolchain; RTLIL is added
    "Vivado": (f"{NAME}.xdc", f"{NAME}.tcl"),
    "Xray": (f"{NAME}.xdc",),
}
# As hw/verilog.py, but attributes stay: constraints and synchronizers are found by them.
KEEPING = (
    *SCRIPT[:-1],
    "attrmap -remove src -remove full_case",
    "write_verilog -norename core.v",
)


def design(board: Board, config: Config, toolchain: str) -> dict[str, str]:
    """The design's files for one of Amaranth's toolchains: ``vdla.il`` and TEMPLATES.

    Raises:
        BoardError: the processor's ports can't carry the config, or a package is missing.
    """
    check(board, config)
    module = find_module(board.name)
    with packages(f"board {board.name}"):
        platform, top = module.platform(toolchain), module.Top(config)
    kind = type(platform)
    templates = {
        name: kind.file_templates.fget(platform)[name.replace(NAME, "{{name}}")]
        for name in TEMPLATES[toolchain]
    }
    platform.__class__ = type(
        kind.__name__,
        (kind,),
        {"file_templates": {**templates, f"{NAME}.il": "{{emit_rtlil()}}"}},
    )
    plan = platform.build(top, name=NAME, do_build=False, emit_src=False)
    return {name: _tidy(text(plan.files[name])) for name in (*TEMPLATES[toolchain], f"{NAME}.il")}


def verilog(rtlil: str) -> str:
    """RTLIL as Verilog, with its attributes."""
    find_yosys()
    return from_rtlil(rtlil, KEEPING)


def _tidy(content: str) -> str:
    """No line ends with blanks, and the last one ends."""
    return "\n".join(line.rstrip() for line in content.splitlines()) + "\n"
