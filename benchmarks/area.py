"""Area and logic depth of the core for Xilinx 7-series, per unit and per MAC, by yosys.

    python benchmarks/area.py [-c CONFIG] [--set KEY=VALUE] [--flat] [--options] [--json]

yosys maps for area, it doesn't place or route. LUTs are the device's, each of which holds one
function of the netlist or two small ones (``boards/flows/lut6.py``); the last line says how many
there would be if each held one. Depth is levels of logic between registers (a carry chain counts
once), not nanoseconds. The hierarchy of units is kept, so a unit's cells are its own; depth follows
paths through all units, and belongs to the unit of the path's end. Beside that of the whole core
stands its depth where nothing is kept, as in the flows that make bitstreams: what lies on both
sides of a unit's border is mapped together. With ``--flat`` all is counted so: fewer cells, and no
one can say whose. With ``--options`` the rows are whole cores: the config, the config with each
option of the instruction set and what that needs, and with all of them; of several fourth engines,
of which a core has one, with the first. The limits are the XC7Z020's, of a PYNQ-Z1 (DS190, table
1). A core takes about two minutes, and as long again flat, if that netlist isn't in the cache
folder.
"""

from __future__ import annotations

import argparse
import json

from rich.console import Console
from rich.table import Table

from vdla.boards.flows.yosys import (
    Flat,
    area,
    by_size,
    total,
    unshared,
)
from vdla.boards.parts import XC7Z020
from vdla.explore.area.mapping import netlist
from vdla.explore.clock import mapping as kept
from vdla.explore.clock.families import FAMILIES
from vdla.explore.clock.paths import Paths
from vdla.explore.clock.series_7 import SERIES_7
from vdla.isa.config import Config, engine_options, load_config
from vdla.isa.identity import OPTIONS

LIMITS = XC7Z020.available
VALUES = {  # of options: 1 is on else
    "table_bytes": 2048,
    "window_taps": 3,
    "window_rows": 2,
    "reciprocal_units": 4,
}


def levels(flat: Flat) -> Paths:
    """Levels of logic between registers, in the place of ns."""
    return Paths(flat, SERIES_7.levels)


def made(config: Config, *, apart: bool) -> Flat:
    """A core's cells, its units kept apart or not; those that aren't are in the cache folder."""
    return Flat(netlist(config, apart=True) if apart else kept.netlist(config, FAMILIES["xc7"]))


def depth(flat: Flat) -> int:
    """Levels of logic on a core's longest path."""
    return round(levels(flat).period_ns())


def bare_multipliers(paths: Paths) -> int:
    """DSPs whose multiplier has logic before it, or no register behind it."""
    bare = 0
    for _, kind, pins, parameters in paths.flat.cells:
        if kind != "DSP48E1":
            continue
        has = {name: str(value).endswith("1") for name, value in parameters.items()}
        fed = {"A": has["AREG"] or has["ADREG"], "B": has["BREG"], "D": has["ADREG"]}
        before = all(
            inside or all(paths.arrival(net) <= 0 for net in pins[pin] if net is not None)
            for pin, inside in fed.items()
        )
        bare += not (before and (has["MREG"] or has["PREG"]))
    return bare


def with_options(config: Config) -> dict[str, Config]:
    """A config, it with each option and what that needs, and with all, by what they have. Options
    that trade cycles for area are left out.

    A config has one fourth engine at most: with all, it has the first.
    """
    options = [o for o in OPTIONS if not o.parameter.pace]
    names = [o.parameter.name for o in options]
    on = {name: f"{name}={VALUES.get(name, 1)}" for name in names}
    each = {
        f"with {o.title}": config.override([on[name] for name in (o.parameter.name, *o.needs)])
        for o in options
    }
    every = [setting for name, setting in on.items() if name not in engine_options()[1:]]
    return {config.name: config, **each, "with all": config.override(every)}


def print_options(config: Config, *, apart: bool, as_json: bool) -> None:
    """Prints what each option costs, a row for each core."""
    rows = {}
    for name, each in with_options(config).items():
        flat = made(each, apart=apart)
        rows[name] = {**total(area(flat)), "depth": depth(flat)}
    if as_json:
        print(json.dumps(rows))
        return
    table = Table("core", *LIMITS, "depth", title=f"options of config {config.name}")
    for name, count in rows.items():
        table.add_row(name, *(f"{count[k]:,.10g}" for k in LIMITS), str(count["depth"]))
    table.add_row("XC7Z020", *(f"{n:,}" for n in LIMITS.values()), "")
    Console(width=110).print(table)


def main() -> None:
    """Prints the table, or one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--config", default="paper")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--flat", action="store_true", help="units are not kept apart")
    parser.add_argument("--options", action="store_true", help="what each option costs")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    config = load_config(arguments.config, arguments.set)
    if arguments.options:
        print_options(config, apart=not arguments.flat, as_json=arguments.json)
        return
    whole_flat = made(config, apart=False)
    flat = whole_flat if arguments.flat else made(config, apart=True)
    units, paths = area(flat), levels(flat)
    depths = {unit: round(number) for unit, number in paths.longest().items()}
    depth_flat = depth(whole_flat)
    bare = bare_multipliers(paths)
    whole = total(units)
    if arguments.json:
        print(json.dumps({"config": config.name, "units": units, "total": whole, "depth": depths,
                          "depth_flat": depth_flat, "unshared": unshared(flat),
                          "bare_multipliers": bare}))  # fmt: skip
        return
    table = Table("unit", *LIMITS, "LUT/MAC", "DSP/MAC", "depth", title=f"config {config.name}")
    macs = config.macs_per_cycle
    rows = [] if arguments.flat else by_size(units)
    apart = max(depths.values())
    whole_depth = f"{depth_flat}" if arguments.flat else f"{apart}, flat {depth_flat}"
    for name, count in [*rows, ("total", whole)]:
        if name == "total":
            table.add_section()
        table.add_row(
            name,
            *(f"{count[k]:,.10g}" for k in LIMITS),
            f"{count['lut'] / macs:.1f}",
            f"{count['dsp'] / macs:.2f}",
            str(depths.get(name, whole_depth if name == "total" else "")),
        )
    table.add_row("XC7Z020", *(f"{n:,}" for n in LIMITS.values()), "", "", "")
    Console(width=110).print(table)
    print(f"multipliers without registers on both sides: {bare}")
    alone = unshared(flat)
    print(f"LUTs if none were shared: {alone:,}, {alone / macs:.1f} per MAC")


if __name__ == "__main__":
    main()
