"""Files that every project for a Zynq holds beside its tool's own, and the common end of a flow.

    vdla.dtso                       device tree overlay
    vdla.bif                        bootgen's input
    vdla.hwh                        hand-off file for PYNQ's class Overlay
    vdla.rdl, vdla_regs.h, vdla.svd the registers: SystemRDL, C by PeakRDL, CMSIS-SVD
    vdla_isa.h                      encodings and registers as `vdla isa header` has them
    ip/vdla.v, ip/component.xml     the core alone, packaged
    vdla.core                       both for FuseSoC

docs/pynq.md says which of them go to the board.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from vdla.boards.board import Board, BoardError, packages
from vdla.boards.flows import devicetree, hwh, ipxact
from vdla.boards.flows.bitbin import bit_bin
from vdla.boards.flows.files import write
from vdla.boards.parts import processor_of
from vdla.hw.verilog import NAME, verilog_of
from vdla.isa.config import Config
from vdla.isa.manual import header, systemrdl
from vdla.isa.svd import svd

MADE = (f"{NAME}.bit", devicetree.BIT_BIN)
SAME = (devicetree.BIT_BIN,)  # of MADE, what holds no date


def common(board: Board, config: Config) -> dict[str, str]:
    """The files, by their names."""
    registers, core = systemrdl(config), verilog_of(config)
    return {
        "vdla.dtso": devicetree.overlay(board, config),
        "vdla.bif": devicetree.bif(board),
        hwh.HWH: hwh.handoff(board, config),
        "vdla.rdl": registers,
        "vdla_regs.h": c_header(registers),
        "vdla.svd": svd(config, processor_of(board).registers),
        "vdla_isa.h": header(config),
        f"ip/{ipxact.VERILOG}": core,
        "ip/component.xml": ipxact.component(config, core),
        "vdla.core": ipxact.fusesoc(board),
    }


def c_header(registers: str) -> str:
    """PeakRDL's C header of a register map in SystemRDL.

    Raises:
        BoardError: PeakRDL is missing.
    """
    with packages("vdla_regs.h"):
        from peakrdl_cheader.exporter import CHeaderExporter
        from systemrdl.compiler import RDLCompiler
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "vdla.rdl", Path(folder) / "vdla_regs.h"
        source.write_text(registers)
        compiler = RDLCompiler()
        compiler.compile_file(str(source))
        CHeaderExporter().export(compiler.elaborate().top, str(made))
        return made.read_text()


def finish(folder: Path, tool: str) -> str:
    """Makes ``vdla.bit.bin`` of the tool's ``vdla.bit``; returns the latter's path.

    Raises:
        BoardError: the tool left none.
    """
    made = folder / MADE[0]
    if not made.exists():
        raise BoardError(f"{made}: expected {tool} to write it, found none")
    write(folder, {devicetree.BIT_BIN: bit_bin(made)})
    return str(made)


def to_load(board: Board, folder: Path) -> tuple[str, ...]:
    """Notes: what takes a finished bitstream to the board."""
    return (
        f"for the board: {folder / devicetree.BIT_BIN}, {folder / 'vdla.dtso'} (docs/pynq.md)",
        f"or with bootgen: {devicetree.bootgen(board)}",
    )
