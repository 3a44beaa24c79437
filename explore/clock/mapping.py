"""Longest paths of designs as yosys maps them for a family of devices: what the clock's model is
fitted to.

A netlist takes yosys a minute, so it is kept in the cache folder under a digest of the design, the
flow's steps and yosys's version: what hasn't changed isn't mapped again.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from vdla.boards.flows.yosys import Flat, Netlist
from vdla.explore.area.mapping import FLOWS, mapped, yosys_version
from vdla.explore.clock.families import Family
from vdla.explore.clock.fit import SCALES, LongPath
from vdla.explore.clock.paths import Paths
from vdla.isa.config import Config
from vdla.support.files import cache_folder, digest, is_sealed, seal, write_bytes

FAST = 3  # gzip's level: a netlist of 30 MB takes 2


def design_of(config: Config, family: Family) -> tuple[str, str]:
    """A config's design in RTLIL, and the digest that its netlist follows from."""
    flow = FLOWS[family.name]
    design = flow.rtlil(config)
    also = "\n".join((design, flow.steps(), yosys_version()))
    return design, digest([], also=also)


def longest_paths(config: Config, family: Family) -> list[LongPath]:
    """The longest path of a mapped design at each of ``SCALES``, each path once.

    Raises:
        BoardError: yosys is missing or fails.
    """
    paths, result = Paths(Flat(netlist(config, family)), family.cells), dict[LongPath, None]()
    for scale in SCALES:
        paths.rescale(scale)
        steps = paths.critical()
        wires = sum(step.wire_ns for step in steps) / scale
        cells = sum(step.cell_ns for step in steps)
        levels = sum(step.level for step in steps)
        result[LongPath(round(cells, 3), round(wires, 3), levels)] = None
    return list(result)


def netlist(config: Config, family: Family) -> Netlist:
    """The netlist of a config's design, units not kept apart, out of the cache or by yosys.

    Raises:
        BoardError: yosys is missing or fails.
    """
    design, key = design_of(config, family)
    path = place_of(key)
    if is_sealed(path):
        known: Netlist = json.loads(gzip.decompress(path.read_bytes()))
        return known
    result = mapped(design, FLOWS[family.name], config.name)
    keep(result, path)
    return result


def place_of(key: str) -> Path:
    """The file of a netlist in the cache folder, by its digest."""
    return cache_folder("netlists") / f"{key}.json.gz"


def keep(netlist: Netlist, path: Path) -> None:
    """Keeps a netlist in the cache folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, gzip.compress(json.dumps(netlist).encode(), FAST))
    seal(path)
