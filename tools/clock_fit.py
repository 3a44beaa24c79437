"""Fits explore's model of the clock to designs that yosys maps, and says how far it is off.

    python tools/clock_fit.py [--family xc7|ecp5] [--minutes 60] [--json]

It maps what the family's plan has and its data lack of today's sources, for so many minutes; a
design that is mapped the same today is not mapped again. Then it scales the family's wires to the
designs that were routed (``explore/clock/data/routed-*.toml``), fits the coefficients, writes the
model, and prints errors over the designs that had no part in the fit. With ``--minutes 0`` it fits
what is measured.

Designs are drawn as those of the area's model are (``tools/area_fit.py``), with seeds of their own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import islice
from statistics import mean
from typing import Any

from area_fit import MIDDLE, Set, config_of, configs
from rich.console import Console
from rich.table import Table

from vdla.explore.area.families import DEFAULT
from vdla.explore.area.families import FAMILIES as AREAS
from vdla.explore.area.mapping import yosys_version
from vdla.explore.clock.families import FAMILIES, Family
from vdla.explore.clock.fit import LongPath, Measured, Routed, fit
from vdla.explore.clock.mapping import design_of, longest_paths
from vdla.explore.clock.model import Model, estimate_by
from vdla.isa.config import Config, load_config
from vdla.support.files import write_bytes

LARGEST = {"ecp5": 64, "xc7": 256}  # multiply-adds, of what is drawn
FITTED = Set(11, 24, MIDDLE, held_out=False, flat=True, largest=LARGEST)
HELD_OUT = Set(12, 10, MIDDLE, held_out=True, flat=True, largest=LARGEST)
BUNDLED = {"xc7": ("tiny", "paper"), "ecp5": ("ulx3s", "ulx3s-wide")}  # fitted to, too


def plan(family: Family) -> Iterator[tuple[Config, bool]]:
    """Designs to map for a family, in the order in which they are worth most, and whether each is
    held out."""
    for config, _, _ in routed_lines(family):
        yield config, False
    for name in BUNDLED[family.name]:
        yield load_config(name), False
    area = AREAS[family.name]
    fitted = islice(configs(FITTED, area), FITTED.count)
    held = list(islice(configs(HELD_OUT, area), HELD_OUT.count))
    for config in fitted:
        yield config, False
        if held:
            yield held.pop(0), True
    yield from ((config, True) for config in held)


def routed_lines(family: Family) -> list[tuple[Config, float, Mapping[str, Any]]]:
    """The routed designs of a family: the config, the clock in MHz, and all that the file says."""
    if not family.routed_path.exists():
        return []
    rows = tomllib.loads(family.routed_path.read_text())["routed"]
    return [(load_config(r["config"], r.get("settings", ())), r["mhz"], r) for r in rows]


def read(family: Family) -> dict[str, dict[str, Any]]:
    """The lines measured so far, by the digest of what was mapped."""
    path = family.measured_path
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {row["design"]: row for row in rows}


def measure(family: Family, minutes: float) -> list[dict[str, Any]]:
    """The lines of the plan by today's sources, as far as the minutes reach; with no minutes, the
    lines that there are. They are written as they come."""
    known = read(family)
    if not minutes:
        return list(known.values())
    end, rows, done = time.monotonic() + 60 * minutes, list[dict[str, Any]](), set[str]()
    for number, (config, held_out) in enumerate(plan(family), 1):
        if config.hash in done:
            continue
        done.add(config.hash)
        key = design_of(config, family)[1]
        if key not in known and time.monotonic() >= end:
            continue
        if key not in known:
            known[key] = _line(config, family, key) | {"held_out": held_out}
            print(f"{number}: {known[key]['seconds']} s", file=sys.stderr, flush=True)
        rows.append(known[key])
        text = "".join(json.dumps(row) + "\n" for row in rows)
        write_bytes(family.measured_path, text.encode())
    return rows


def _line(config: Config, family: Family, key: str) -> dict[str, Any]:
    """A line of measurements."""
    begun = time.monotonic()
    paths = longest_paths(config, family)
    hardware = config.machine
    del hardware["memory"]
    return {
        "design": key,
        "yosys": yosys_version(),
        "config": hardware,
        "paths": [astuple(path) for path in paths],
        "seconds": round(time.monotonic() - begun),
    }


def measured_of(rows: Sequence[Mapping[str, Any]]) -> list[Measured]:
    """Measurements of lines."""
    return [
        Measured(config_of(row), [LongPath(*path) for path in row["paths"]], row["held_out"])
        for row in rows
    ]


def to_toml(model: Model, held: float, count: int) -> str:
    """The model's file."""
    lines = [
        f"# Generated by tools/clock_fit.py --family {model.family.name}.",
        f"# Mean error of the clock over {count} designs held out: {held:.1%}.",
        "[wires]",
        f"scale = {model.wires}",
    ]
    for title, values in (("period_ns", model.period), ("levels", model.levels)):
        lines += ["", f"[{title}]", *(f'"{name}" = {value}' for name, value in values.items())]
    return "\n".join(lines) + "\n"


def errors(model: Model, measured: Sequence[Measured]) -> list[float]:
    """Relative errors of the clock."""
    mapped = [1e3 / each.period(model.wires) for each in measured]
    return [
        estimate_by(model, each.config).mhz / mhz - 1
        for each, mhz in zip(measured, mapped, strict=True)
    ]


def main() -> None:
    """Measures, fits, writes the model and prints its errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=FAMILIES, default=DEFAULT)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    family = FAMILIES[arguments.family]
    measured = measured_of(measure(family, arguments.minutes))
    held = [m for m in measured if m.held_out]
    if not held or len(held) == len(measured):
        parser.error(
            f"expected designs to fit and some held out in {family.measured_path.name}, found "
            "none; give --minutes more"
        )
    lines = routed_lines(family)
    routed = [Routed(config, mhz) for config, mhz, _ in lines]
    model = fit(measured, routed, family)
    off = errors(model, held)
    worst, error = max(map(abs, off)), mean(map(abs, off))
    write_bytes(family.model_path, to_toml(model, error, len(held)).encode())
    if arguments.json:
        print(json.dumps({"fitted": len(measured) - len(held), "held_out": off,
                          "wires": model.wires}))  # fmt: skip
        return
    _show(model, measured, lines)
    print(f"held out: mean error {error:.1%}, largest {worst:.1%}; wires × {model.wires}")


def _show(
    model: Model,
    measured: Sequence[Measured],
    lines: Sequence[tuple[Config, float, Mapping[str, Any]]],
) -> None:
    """A row for each design held out, and for each that was routed."""
    table = Table("design", "mapped", "levels", "model", "error", title=f"MHz, {model.family.part}")
    for each in measured:
        if each.held_out:
            name = f"{each.config.block_in} × {each.config.block_out}"
            _row(table, name, 1e3 / each.period(model.wires), each, model)
    known = {each.config.hash: each for each in measured}
    for config, mhz, row in lines:
        _row(table, f"{row['config']}, routed {mhz:g}", mhz, known[config.hash], model)
    Console(width=100).print(table)


def _row(table: Table, name: str, mhz: float, each: Measured, model: Model) -> None:
    mapped, estimated = 1e3 / each.period(model.wires), estimate_by(model, each.config).mhz
    levels = str(each.longest(model.wires).levels)
    table.add_row(name, f"{mapped:.1f}", levels, f"{estimated:.1f}", f"{estimated / mhz - 1:+.1%}")


if __name__ == "__main__":
    main()
