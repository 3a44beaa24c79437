"""Area and logic depth of the core for Xilinx 7-series, per unit and per MAC, by yosys.

    python benchmarks/area.py [-c CONFIG] [--set KEY=VALUE] [--flat] [--options] [--json]

yosys maps for area, it doesn't place or route. LUTs are the device's, each of which holds one
function of the netlist or two small ones (``boards/flows/lut6.py``); the last line says how many
there would be if each held one. Depth is levels of logic between registers (a carry chain counts
once), not nanoseconds. The hierarchy of units is kept, so a unit's cells are its own; depth follows
paths through all units, and belongs to the unit of the path's end. With ``--flat`` nothing is kept,
as in the flows that make bitstreams: fewer cells, and no one can say whose. With ``--options`` the
rows are whole cores: the config, the config with each option of the instruction set and what that
needs, and with all of them; of several fourth engines, of which a core has one, with the first. The
limits are the XC7Z020's, of a PYNQ-Z1 (DS190, table 1). A core takes about two minutes.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.console import Console
from rich.table import Table

from vdla.boards.flows.yosys import (
    LUT_RAMS,
    Flat,
    area,
    by_size,
    total,
    unit_of,
    unshared,
)
from vdla.boards.parts import XC7Z020
from vdla.explore.area.mapping import netlist
from vdla.isa.config import Config, engine_options, load_config
from vdla.isa.identity import OPTIONS

LIMITS = XC7Z020.available
VALUES = {  # of options: 1 is on else
    "table_bytes": 2048,
    "window_taps": 3,
    "window_rows": 2,
    "reciprocal_units": 4,
}


class Paths:
    """Levels of logic between registers; what a register gives comes at 0."""

    def __init__(self, flat: Flat) -> None:
        self.flat = flat
        self.driver: dict[int, tuple[int, str]] = {}
        for index, (_, kind, pins, _) in enumerate(flat.cells):
            for pin, bits in pins.items():
                if flat.directions[kind][pin] == "output":
                    self.driver |= {bit: (index, pin) for bit in bits if bit is not None}
        self._known: dict[tuple[int, str], int] = {}

    def arrival(self, bits: list[Any]) -> int:
        """Levels behind the latest of some nets; 0 for constants and inputs."""
        return max((self._output(*self.driver[b]) for b in bits if b in self.driver), default=0)

    def _output(self, index: int, pin: str) -> int:
        key = (index, pin)
        if key not in self._known:
            _, kind, pins, _ = self.flat.cells[index]
            levels = [
                self.arrival(pins[name]) + (0 if kind == "CARRY4" and name == "CI" else 1)
                for name in _followed(kind, pin, pins)
            ]
            self._known[key] = max(levels, default=0)
        return self._known[key]

    def longest(self) -> dict[str, int]:
        """The longest path that ends at a register of each unit."""
        worst: dict[str, int] = {}
        for path, kind, pins, _ in self.flat.cells:
            if kind.startswith(("FD", "RAM", "DSP")):
                unit = unit_of(path)
                inputs = (b for p, b in pins.items() if self.flat.directions[kind][p] == "input")
                worst[unit] = max([worst.get(unit, 0), *map(self.arrival, inputs)])
        return worst

    def bare_multipliers(self) -> int:
        """DSPs whose multiplier has logic before it, or no register behind it."""
        bare = 0
        for _, kind, pins, parameters in self.flat.cells:
            if kind != "DSP48E1":
                continue
            has = {name: str(value).endswith("1") for name, value in parameters.items()}
            fed = {"A": has["AREG"] or has["ADREG"], "B": has["BREG"], "D": has["ADREG"]}
            before = all(inside or self.arrival(pins[p]) == 0 for p, inside in fed.items())
            bare += not (before and (has["MREG"] or has["PREG"]))
        return bare


def _followed(kind: str, output: str, pins: dict[str, list[Any]]) -> list[str]:
    """The input pins that an output follows without a clock."""
    if kind.startswith(("FD", "DSP", "RAMB")):
        return []
    if kind in LUT_RAMS:  # a read follows its address
        address = f"ADDR{output[-1]}" if output.startswith("DO") else "DPRA"
        return [pin for pin in pins if pin.startswith(address)]
    return [pin for pin in pins if pin not in ("O", "CO")]


def with_options(config: Config) -> dict[str, Config]:
    """A config, it with each option and what that needs, and with all, by what they have.

    A config has one fourth engine at most: with all, it has the first.
    """
    on = {o.parameter: f"{o.parameter}={VALUES.get(o.parameter, 1)}" for o in OPTIONS}
    each = {
        f"with {o.title}": config.override([on[name] for name in (o.parameter, *o.needs)])
        for o in OPTIONS
    }
    every = [setting for name, setting in on.items() if name not in engine_options()[1:]]
    return {config.name: config, **each, "with all": config.override(every)}


def print_options(config: Config, *, apart: bool, as_json: bool) -> None:
    """Prints what each option costs, a row for each core."""
    rows = {}
    for name, each in with_options(config).items():
        flat = Flat(netlist(each, apart=apart))
        rows[name] = {**total(area(flat)), "depth": max(Paths(flat).longest().values())}
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
    flat = Flat(netlist(config, apart=not arguments.flat))
    units, paths = area(flat), Paths(flat)
    levels, bare = paths.longest(), paths.bare_multipliers()
    whole = total(units)
    if arguments.json:
        print(json.dumps({"config": config.name, "units": units, "total": whole, "depth": levels,
                          "unshared": unshared(flat), "bare_multipliers": bare}))  # fmt: skip
        return
    table = Table("unit", *LIMITS, "LUT/MAC", "DSP/MAC", "depth", title=f"config {config.name}")
    macs = config.macs_per_cycle
    rows = [] if arguments.flat else by_size(units)
    for name, count in [*rows, ("total", whole)]:
        if name == "total":
            table.add_section()
        table.add_row(
            name,
            *(f"{count[k]:,.10g}" for k in LIMITS),
            f"{count['lut'] / macs:.1f}",
            f"{count['dsp'] / macs:.2f}",
            str(levels.get(name, max(levels.values()) if name == "total" else "")),
        )
    table.add_row("XC7Z020", *(f"{n:,}" for n in LIMITS.values()), "", "", "")
    Console(width=110).print(table)
    print(f"multipliers without registers on both sides: {bare}")
    alone = unshared(flat)
    print(f"LUTs if none were shared: {alone:,}, {alone / macs:.1f} per MAC")


if __name__ == "__main__":
    main()
