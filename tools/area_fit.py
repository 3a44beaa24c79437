"""Fits explore's area model to cores that yosys maps for a family, and says how far it is off.

    python tools/area_fit.py [--family xc7|ecp5] [--measure MINUTES] [--fresh] [--json]

Without ``--measure`` it fits the family's coefficients, a file in ``explore/area/data/``, to the
mappings in the file beside it (``explore/area/families.py`` names both), in a second, and prints
errors over the configs that had no part in the fit. With it, it first maps more configs for so many
minutes, one after the other, a line each. It goes on where it was stopped. A line has the digest of
what was mapped and yosys's version; lines of other digests are used, too, and counted. With
``--fresh`` they are dropped.

Configs are drawn from ``CHOICES``, with a seed for each set: to fit, units are kept apart, and a
few cores are mapped flat as well; those held out are mapped flat, as flows do. The clock's model is
fitted to the first ones of the same sets (``tools/clock_fit.py``), and a flat netlist that is in
the cache folder isn't made again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from random import Random
from typing import Any

from rich.console import Console
from rich.table import Table

from vdla.boards.flows.yosys import Flat
from vdla.explore.area import mapping
from vdla.explore.area.families import DEFAULT, FAMILIES, Family
from vdla.explore.area.fit import RESOURCES, Measured, fit
from vdla.explore.area.model import Area, Model, estimate_by
from vdla.explore.clock import mapping as clocked
from vdla.explore.clock.families import FAMILIES as CLOCKED
from vdla.hw.gemm import Gemm
from vdla.isa.config import Config, load_config, parse_config
from vdla.isa.parameters import ConfigError
from vdla.support.files import write_bytes

KIB = 1024
SMALL = ((4, 4), (4, 4), (8, 4), (8, 4), (4, 8), (8, 8), (16, 4))
LARGE = (
    *((4, 4), (8, 4), (4, 8), (8, 8), (8, 8), (16, 4), (16, 8), (16, 8), (8, 16), (8, 16)),
    *((16, 16), (16, 16), (16, 16), (32, 8), (32, 16), (16, 32), (32, 32)),
)
CHOICES = {  # each is as likely as often as it stands here
    "port_bytes": (4, 8, 8, 16),
    "inp_bytes": [KIB * n for n in (4, 8, 16, 32, 64, 128)],
    "wgt_bytes": [KIB * n for n in (4, 8, 16, 32, 64, 128, 256)],
    "acc_bytes": [KIB * n for n in (4, 8, 16, 32, 64, 128, 256, 512)],
    "uop_bytes": [KIB * n for n in (4, 8, 16, 32)],
    "command_queue": (4, 8, 16, 16, 32, 64),
    "token_queue": (4, 16, 64, 64, 256),
    "burst_beats": (8, 16, 16, 32, 64),
    "reads_in_flight": (4, 8, 16, 32, 32, 64),
    "read_buffer_beats": (64, 128, 256, 256, 512),
    "writes_in_flight": (4, 8, 16, 16, 32),
    "table_bytes": [512 * n for n in (0, 0, 0, 1, 2, 4, 8)],
    "forwarding": (0, 0, 1),
    "window_taps": (0, 0, 2, 3, 4),
    "window_rows": (1, 2),
    "vector_engine": (0, 0, 1),
    "reciprocal_units": (0, 0, 0, 1, 2, 4),
    "fabric_lanes": (0, 0, 0, 2, 4, 8),
    "alu_groups": (1, 1, 2),
    "store_groups": (1, 1, 2),
}
BUNDLED = {"xc7": ("paper",), "ecp5": ("ulx3s-wide", "ulx3s")}  # held out
WIDER = ("block_in=8", "block_out=8", "port_bytes=8")
NIBBLES = "weights4=1"  # CHOICES hasn't it, so that they keep their draws
FIRST = {  # to fit: no option, a wider port, weights of 4 bits
    "xc7": (
        *(("tiny", ()), ("tiny", (NIBBLES,))),
        *(("tiny", WIDER), ("tiny", (*WIDER, NIBBLES))),
    ),
    "ecp5": (("tiny", ()), ("ulx3s", ("port_bytes=8",)), ("tiny", (NIBBLES,))),
}


@dataclass(frozen=True)
class Set:
    """So many configs of some shapes, drawn with a seed. ``largest`` are the most multiply-adds, by
    families for which there is such a number."""

    seed: int
    count: int
    shapes: Sequence[tuple[int, int]]
    largest: Mapping[str, int]


FITTED = Set(11, 60, SMALL, {})
HELD_OUT = Set(12, 16, SMALL, {})
LARGER = Set(2, 4, LARGE, {"ecp5": 128})  # held out, too
ARRAYS = Set(4, 10, LARGE, {"ecp5": 128})  # of which GEMM is mapped alone, to fit
FLAT_TOO = 6  # configs to fit that are mapped flat as well, the first ones
CORES_FIRST = 24  # cores that are mapped before GEMM alone


def configs(chosen: Set, family: Family) -> Iterator[Config]:
    """The configs of a set that are for a family: legal ones, each another."""
    rng = Random(chosen.seed)
    while True:
        block_in, block_out = rng.choice(chosen.shapes)
        values = {name: rng.choice(options) for name, options in CHOICES.items()}
        if not values["window_taps"]:
            values["window_rows"] = 1
        data = {"block_in": block_in, "block_out": block_out, **values}
        if block_in * block_out > chosen.largest.get(family.name, math.inf):
            continue
        try:
            yield parse_config(data, "drawn", "drawn")
        except ConfigError:
            continue


def plan(family: Family) -> Iterator[tuple[Config, bool, bool]]:
    """Configs to map for a family, in the order in which they are worth most: config, flat, held
    out.
    """
    fitted = [(config, False, False) for config in drawn(FITTED, family)]
    both = ((config, True, False) for config, _, _ in fitted[:FLAT_TOO])
    first = FIRST.get(family.name, ())
    yield from ((load_config(name, settings), False, False) for name, settings in first)
    yield from ((load_config(name), True, True) for name in BUNDLED.get(family.name, ()))
    held = (
        (config, True, True) for config in chain(drawn(HELD_OUT, family), drawn(LARGER, family))
    )
    pairs = chain.from_iterable(zip_longest(held, fitted))
    yield from (each for each in islice(pairs, 2 * FLAT_TOO) if each)
    yield from both
    yield from (each for each in pairs if each)


def drawn(chosen: Set, family: Family) -> Iterator[Config]:
    """All configs of a set."""
    return islice(configs(chosen, family), chosen.count)


def measure(config: Config, family: Family, *, flat: bool, held_out: bool) -> dict[str, Any]:
    """A line of measurements: what a core takes, unit by unit, and its RAMs."""
    begun = time.monotonic()
    made = (
        clocked.netlist(config, CLOCKED[family.name])
        if flat
        else mapping.netlist(config, family.name, apart=True)
    )
    cells = Flat(made)
    units, rams = (f(cells, family.name) for f in (mapping.units_of, mapping.rams_of))
    return {"held_out": held_out, "flat": flat} | _line(config, family, units, rams, begun)


def measure_gemm(config: Config, family: Family) -> dict[str, Any]:
    """A line of measurements about the multipliers alone, which take a small part of the time."""
    begun = time.monotonic()
    cells = Flat(mapping.netlist_of(Gemm(config), family.name, config.name))
    (counts,) = mapping.units_of(cells, family.name).values()
    made = _line(config, family, {"GEMM": counts}, {}, begun)
    return {"held_out": False, "flat": False} | made


def _line(
    config: Config,
    family: Family,
    units: Mapping[str, Any],
    rams: Mapping[str, Any],
    begun: float,
) -> dict[str, Any]:
    hardware = config.machine
    del hardware["memory"]
    return {
        "config": hardware,
        "hardware": mapping.hardware_digest(family.name),
        "yosys": mapping.yosys_version(),
        "units": units,
        "rams": rams,
        "seconds": round(time.monotonic() - begun),
    }


def read(family: Family) -> list[dict[str, Any]]:
    """The lines measured so far."""
    path = family.measured_path
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def config_of(row: Mapping[str, Any]) -> Config:
    """The config of a measured line."""
    return parse_config({**row["config"], "memory": {}}, "drawn", "drawn")


def drop_others(family: Family) -> None:
    """Drops lines of other sources than today's."""
    today = mapping.hardware_digest(family.name)
    write_rows(family, [row for row in read(family) if row["hardware"] == today])


def write_rows(family: Family, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes the lines measured so far."""
    write_bytes(family.measured_path, "".join(json.dumps(row) + "\n" for row in rows).encode())


def measure_more(family: Family, minutes: float) -> None:
    """Maps what the plan has next, until the minutes are over."""
    end = time.monotonic() + 60 * minutes
    rows = read(family)
    done = {(config_of(row).hash, row["flat"]) for row in rows}
    arrays = ((config, False, False) for config in drawn(ARRAYS, family))
    cores = (("core", each) for each in plan(family))
    alone = (("GEMM", each) for each in arrays)
    for kind, (config, flat, held_out) in chain(islice(cores, CORES_FIRST), alone, cores):
        if (config.hash, flat) in done:
            continue
        if time.monotonic() >= end:
            return
        rows.append(
            measure_gemm(config, family)
            if kind == "GEMM"
            else measure(config, family, flat=flat, held_out=held_out)
        )
        write_rows(family, rows)
        print(
            f"{len(rows)}: {kind} of {config.block_in} x {config.block_out}, "
            f"{'flat' if flat else 'apart'}{', held out' if held_out else ''}: "
            f"{rows[-1]['seconds']} s",
            file=sys.stderr,
            flush=True,
        )


def to_toml(model: Model) -> str:
    """The model's file."""
    lines = [f"# Generated by tools/area_fit.py from {model.family.measured}.", "[shared]"]
    lines += [f"lut = {model.shared_luts}", f"ff = {model.shared_ffs}"]
    for resource, units in zip(RESOURCES, (model.luts, model.ffs), strict=True):
        for unit, coefficients in units.items():
            lines += ["", f'[{resource}."{unit}"]']
            lines += [f'"{name}" = {value}' for name, value in coefficients.items()]
    return "\n".join(lines) + "\n"


def errors(model: Model, measured: Sequence[Measured]) -> dict[str, list[float]]:
    """Relative errors of LUTs and flip-flops, and differences of multipliers and block RAMs, by
    resource."""
    result: dict[str, list[float]] = {name: [] for name in ("lut", "ff", "dsp", "bram")}
    for m in measured:
        area: Area = estimate_by(model, m.config)
        for name, estimated in area.by_resource.items():
            actual = m.total(name)
            off = abs(estimated - actual)
            result[name].append(off / actual if name in RESOURCES else off)
    return result


def main() -> None:
    """Measures, fits, writes the model and prints its errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", choices=FAMILIES, default=DEFAULT)
    parser.add_argument("--measure", type=float, default=0, metavar="MINUTES")
    parser.add_argument("--fresh", action="store_true", help="drop lines of other sources")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    family = FAMILIES[arguments.family]
    if arguments.fresh:
        drop_others(family)
    if arguments.measure:
        measure_more(family, arguments.measure)
    rows = read(family)
    measured = [Measured.of(row, config_of(row)) for row in rows]
    if all(m.flat or m.alone for m in measured) or not any(m.held_out for m in measured):
        parser.error(
            f"expected a core with its units apart and one held out in {family.measured}, "
            "found none; map more with --measure MINUTES"
        )
    model = fit(measured, family)
    write_bytes(family.model_path, to_toml(model).encode())
    held = [m for m in measured if m.held_out]
    off = errors(model, held)
    other = sum(row["hardware"] != mapping.hardware_digest(family.name) for row in rows)
    if arguments.json:
        print(json.dumps({"fitted": len(measured) - len(held), "held_out": off, "other": other}))
        return
    table = Table("", "mean error", "largest", title=f"{len(held)} configs held out")
    for name in RESOURCES:
        table.add_row(name, f"{sum(off[name]) / len(held):.1%}", f"{max(off[name]):.1%}")
    Console(width=80).print(table)
    exact = sum(d == b == 0 for d, b in zip(off["dsp"], off["bram"], strict=True))
    print(f"multipliers and {family.ram} are exact in {exact} of {len(held)}")
    print(
        f"fitted to {len(measured) - len(held)} mappings; {other} of {len(rows)} of other sources"
    )


if __name__ == "__main__":
    main()
