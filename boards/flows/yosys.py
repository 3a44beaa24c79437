"""Area on AMD's devices by yosys: what a design takes, per unit, and whether it fits.

yosys maps, for area, and doesn't place or route: there is no timing and no bitstream. LUTs are the
device's, each with room for two small ones of the netlist (``lut6.py``). The hierarchy of units is
kept, so a unit's cells are its own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vdla.boards.board import Bitstream, Board
from vdla.boards.flows.files import digest, discard, write
from vdla.boards.flows.fit import check_fit, verdict
from vdla.boards.flows.lut6 import pairs
from vdla.boards.flows.script import yosys_script
from vdla.boards.flows.tools import Progress, call, find_yosys
from vdla.boards.flows.xilinx import design
from vdla.hw.verilog import NAME
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Mem
from vdla.isa.options import OPTIONS
from vdla.isa.ring import Engine

FAMILIES = {"xc7": "xc7", "xcz": "xcup"}  # yosys's, by the device's first letters
OF_MICRO_OPS = (  # engines that have an ALU in some config
    Engine.COMPUTE,
    *(o.engine.engine for o in OPTIONS if o.engine and Alu.mnemonic in o.engine.executes),
)
UNITS = {  # by the first words of the instance's name in the core
    "fetch": "fetch",
    **{engine.name.lower(): engine.name for engine in Engine},
    "compute.gemm": "GEMM",
    **{f"{engine.name.lower()}.alu": "ALU" for engine in OF_MICRO_OPS},
    "dma": "DMA",
    "csr": "registers",
    "counters": "counters",
    **dict.fromkeys((memory.buffer for memory in Mem), "scratchpads"),
}
CORE, OTHERS, AROUND = "core", "queues, tokens", "around the core"
LUT_RAMS = {
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32X1D": 2,
    "RAM64X1D": 2,
    "RAM128X1D": 4,
    "RAM32M16": 8,
    "RAM64M8": 8,
}
BLOCK_RAMS = {"RAMB36E1": 1.0, "RAMB18E1": 0.5, "RAMB36E2": 1.0, "RAMB18E2": 0.5}
MADE = (f"{NAME}.il", f"{NAME}.ys", f"{NAME}.json")
FED_BY_LUTS = {"CARRY": ("S",), "MUXF": ("I0", "I1")}  # pins, by kinds without their number
DSPS = ("DSP48E1", "DSP48E2")

# For depth, like yosys's own mapping, and then for LUTs where that costs no level: again and again.
AGAIN = "strash;dch,-f;if,-C,16;mfs2;lutpack,-S,1;"
MAPPING = f"""\
opt_expr -mux_undef -noclkinv
abc -lut 6 -script +strash;ifraig;scorr;dc2;dch,-f;if,-C,16;mfs2,-W,4;{4 * AGAIN}
opt_merge
clean
techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6
xilinx_dffopt
opt_lut_ins -tech xilinx
"""

Netlist = dict[str, Any]
Area = dict[str, Counter[str]]


def synthesize(
    board: Board,
    config: Config,
    folder: Path,
    progress: Progress = lambda what, done, total: None,
) -> Bitstream:
    """Maps the board's design; ``folder/area.md`` and ``area.json`` have it unit by unit.

    Raises:
        BoardError: yosys is missing or fails, or the design doesn't fit.
    """
    yosys = find_yosys()
    progress("design", 0, 2)
    files = design(board, config, "Xray" if board.device.startswith("xc7") else "Vivado")
    discard(folder, f"{NAME}.json", "area.json", "area.md")
    write(folder, {f"{NAME}.il": files[f"{NAME}.il"], f"{NAME}.ys": script(family(board))})
    progress("synthesis", 1, 2)
    call([yosys, "-q", f"{NAME}.ys"], folder, "yosys.log")
    units = area_in(folder)
    used = dict(total(units))
    report = {
        "config": config.name, "sha256": digest(folder, MADE), "units": units, "total": used
    }  # fmt: skip
    write(folder, {"area.json": json.dumps(report) + "\n", "area.md": markdown(board, units)})
    check_fit(board, config, used)
    progress("done", 2, 2)
    return Bitstream(
        board=board,
        toolchain="yosys",
        config=config.name,
        folder=str(folder),
        bitstream=None,
        hashed=MADE,
        fmax_mhz=None,
        used=used,
        notes=(verdict(board, used), f"unit by unit: {folder / 'area.md'}"),
    )


def family(board: Board) -> str:
    """yosys's name of a board's device family."""
    return FAMILIES[board.device[:3]]


def script(family: str, *, apart: bool = True) -> str:
    """Maps ``vdla.il`` for a device family into ``vdla.json``.

    Within units all is flat, so that a constant reaches what it is for; units are kept ``apart`` to
    be counted. Wide multiplexers out of MUXF7 and MUXF8 are left out: they save a level, and cost
    twice the LUTs; and so are shift registers in LUTs, since there are flip-flops enough.
    """
    return yosys_script(
        f"synth_xilinx -family {family} -flatten -nowidelut -nosrl -noiopad -noclkbuf",
        before=kept_apart() if apart else "",
        mapping=MAPPING,
        then="finalize",
    )


def kept_apart() -> str:
    """Command that has yosys keep the units of a core apart, to be counted."""
    units = " ".join(f"*core.{name}" for name in (*UNITS, "*_queue", "*_to_*"))
    return f"setattr -mod -set keep_hierarchy 1 *core {units}\n"


class Flat:
    """All cells of a netlist with the nets they are on; a port's net is its parent's."""

    def __init__(self, modules: Netlist) -> None:
        self.cells: list[tuple[str, str, dict[str, list[Any]], dict[str, str]]] = []
        self.directions: dict[str, dict[str, str]] = {}
        self.modules = modules
        self._count = 0
        self._add(NAME, "", {})

    def _add(self, name: str, path: str, outer: dict[Any, int]) -> None:
        module, nets = self.modules[name], dict(outer)

        def net(bit: Any) -> Any:
            if isinstance(bit, str):  # a constant
                return None
            if bit not in nets:
                self._count += 1
                nets[bit] = self._count
            return nets[bit]

        for cell_name, cell in module["cells"].items():
            kind = cell["type"]
            pins = {pin: [net(bit) for bit in bits] for pin, bits in cell["connections"].items()}
            inner = self.modules.get(kind)
            if inner is None or inner.get("attributes", {}).get("blackbox"):
                self.directions.setdefault(kind, {}).update(cell["port_directions"])
                self.cells.append((path, kind, pins, cell["parameters"]))
                continue
            ports = {
                bit: pins[port][i]
                for port, info in inner["ports"].items()
                for i, bit in enumerate(info["bits"])
                if port in pins and not isinstance(bit, str) and pins[port][i] is not None
            }
            self._add(kind, f"{path}.{cell_name}" if path else cell_name, ports)


def unit_of(path: str) -> str:
    """The unit that an instance path belongs to: ``core.compute.alu.shift_3`` is ALU's.

    What has no core in its path stands around it.
    """
    parts = path.split(".")
    if CORE not in parts:
        return AROUND
    inner = parts[parts.index(CORE) + 1 :]
    for length in (2, 1):
        if unit := UNITS.get(".".join(inner[:length])):
            return unit
    return OTHERS if inner else CORE


def area(flat: Flat) -> Area:
    """LUT, FF, DSP and BRAM (in RAMB36) per unit."""
    result: Area = {}
    for path, kind, _, _ in flat.cells:
        count = result.setdefault(unit_of(path), Counter())
        if _is_lut(kind):
            count["lut"] += 1
        elif kind in LUT_RAMS:
            count["lut"] += LUT_RAMS[kind]
        elif kind.startswith("FD"):
            count["ff"] += 1
        elif kind in DSPS:
            count["dsp"] += 1
        elif kind in BLOCK_RAMS:
            count["bram"] += BLOCK_RAMS[kind]  # type: ignore[assignment]
    for unit, shareable in _shareable(flat).items():
        result[unit]["lut"] -= pairs(shareable)
    return result


def _is_lut(kind: str) -> bool:
    return kind.startswith(("LUT", "SRL")) or kind == "INV"


def _shareable(flat: Flat) -> dict[str, list[frozenset[int]]]:
    """The nets that each LUT takes, per unit; without those that must be alone (``lut6.py``)."""
    alone = {
        bit
        for _, kind, pins, _ in flat.cells
        for pin in FED_BY_LUTS.get(kind.rstrip("0123456789"), ())
        for bit in pins[pin]
    }
    result: dict[str, list[frozenset[int]]] = {}
    for path, kind, pins, _ in flat.cells:
        if _is_lut(kind) and not kind.startswith("SRL") and pins["O"][0] not in alone:
            nets = (bits[0] for pin, bits in pins.items() if pin != "O")
            result.setdefault(unit_of(path), []).append(frozenset(n for n in nets if n is not None))
    return result


def unshared(flat: Flat) -> int:
    """LUTs if no two functions shared one."""
    return sum(_is_lut(kind) + LUT_RAMS.get(kind, 0) for _, kind, _, _ in flat.cells)


def area_in(folder: Path) -> Area:
    """Area by unit of the netlist that yosys wrote to a folder."""
    return area(Flat(json.loads((folder / f"{NAME}.json").read_text())["modules"]))


def total(units: Area) -> Counter[str]:
    """The area of all units together."""
    return sum(units.values(), Counter())


def by_size(units: Area) -> Iterator[tuple[str, Counter[str]]]:
    """The units, the most LUTs first."""
    yield from sorted(units.items(), key=lambda unit: -unit[1]["lut"])


def markdown(board: Board, units: Area) -> str:
    """The table of a board's design."""
    columns = tuple(board.available)

    def row(name: str, count: Mapping[str, float]) -> str:
        return f"| {name} | " + " | ".join(f"{count[k]:,.10g}" for k in columns) + " |"

    return "\n".join(
        [
            f"| unit | {' | '.join(name.upper() for name in columns)} |",
            f"| --- |{' ---: |' * len(columns)}",
            *(row(name, count) for name, count in by_size(units)),
            row("**total**", total(units)),
            row(f"{board.device}", Counter(board.available)),
            "",
        ]
    )
