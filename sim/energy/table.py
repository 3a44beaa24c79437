"""Tables of energy: what events cost, each with its source, and what accesses of buffers cost.

The energy of an access follows from the buffer's size and the width of the access, between the
table's rows: a plane of log(energy) over log(size) and log(width), fitted by least squares that
weigh each row by 1 / distance² (moving least squares). At a row it is the row's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from vdla.support.errors import UserError
from vdla.support.named_toml import names_in, read_toml

TABLES = Path(__file__).parent / "tables"
EVENTS = ("multiply_add", "add", "multiply", "dram_bit")
ROW_KEYS = ("bytes", "bits", "read_pj", "write_pj")
LEAST_ROWS = 3  # of a plane
LEAST, MOST = 1e-30, 1e30  # of any number of a table: their logarithms and squares are finite
FAR = 2.0  # doublings of size or width beyond all rows


class EnergyError(UserError):
    """A table of energy that is unknown or malformed."""


@dataclass(frozen=True)
class Buffer:
    """A row: a buffer of so many bytes, an access of so many bits, and its energy in pJ."""

    bytes: int
    bits: int
    read_pj: float
    write_pj: float


@dataclass(frozen=True)
class EnergyTable:
    """Energy of events in pJ, by ``EVENTS``' names, and rows of buffers; ``title`` says of what."""

    name: str
    title: str
    events: Mapping[str, float]
    buffers: tuple[Buffer, ...]

    def access(self, size: int, bits: int, *, writes: bool) -> float:
        """Energy in pJ of an access of ``bits`` bits of a buffer of ``size`` bytes."""
        return _access(self, size, bits, writes)

    def is_far(self, size: int, bits: int) -> bool:
        """Whether a buffer lies more than ``FAR`` doublings beyond all rows, in size or width."""
        sizes = [math.log2(size / b.bytes) for b in self.buffers]
        widths = [math.log2(bits / b.bits) for b in self.buffers]
        return any(min(each) > FAR or max(each) < -FAR for each in (sizes, widths))

    def __hash__(self) -> int:
        return hash((self.name, self.title, self.buffers))


@cache
def _access(table: EnergyTable, size: int, bits: int, writes: bool) -> float:
    points = np.log2([[b.bytes / size, b.bits / bits] for b in table.buffers])
    energies = np.log2([b.write_pj if writes else b.read_pj for b in table.buffers])
    distances = (points**2).sum(axis=1)
    if distances.min() == 0:
        return float(2 ** energies[distances.argmin()])
    weights = 1 / np.sqrt(distances)  # of a row: squared they are 1 / distance²
    plane = np.column_stack([np.ones(len(points)), points]) * weights[:, None]
    solution = np.linalg.lstsq(plane, energies * weights, rcond=None)[0]
    return float(2 ** solution[0])


def table_names() -> list[str]:
    """The tables that ship with vdla."""
    return names_in(TABLES)


def load_table(name: str) -> EnergyTable:
    """A table by its name, or from a TOML file.

    Raises:
        EnergyError: no such table, not TOML, or an entry that is missing or no number above zero.
    """
    return _parse(*read_toml("energy table", name, TABLES, EnergyError))


def _parse(data: Mapping[str, Any], path: Path) -> EnergyTable:
    """A table of decoded TOML."""
    events, rows = data.get("events"), data.get("buffers")
    if not isinstance(events, Mapping) or set(events) != set(EVENTS):
        listed = ", ".join(events) if isinstance(events, Mapping) and events else "none"
        raise EnergyError(f"{path}: expected the events {', '.join(EVENTS)}, found {listed}")
    if not isinstance(rows, list) or len(rows) < LEAST_ROWS:
        count = len(rows) if isinstance(rows, list) else 0
        raise EnergyError(f"{path}: expected at least {LEAST_ROWS} buffers, found {count}")
    for place, entry, keys in (
        *((f"events.{name}", events[name], ("pj",)) for name in EVENTS),
        *((f"buffers, row {number}", row, ROW_KEYS) for number, row in enumerate(rows, 1)),
    ):
        _check(path, place, entry, keys)
    return EnergyTable(
        path.stem,
        str(data.get("title", path.stem)),
        {name: float(events[name]["pj"]) for name in EVENTS},
        tuple(
            Buffer(row["bytes"], row["bits"], float(row["read_pj"]), float(row["write_pj"]))
            for row in rows
        ),
    )


def _check(path: Path, place: str, entry: object, keys: tuple[str, ...]) -> None:
    """Numbers above zero, and where they come from."""
    if not isinstance(entry, Mapping):
        raise EnergyError(f"{path}: expected {place} to be a table, found {entry!r}")
    for key in keys:
        value = entry.get(key)
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        if not LEAST <= number <= MOST:
            raise EnergyError(
                f"{path}: expected {key} of {place} to be a number from {LEAST:g} to {MOST:g}, "
                f"found {value!r}"
            )
    if not isinstance(entry.get("source"), str) or not entry["source"]:
        raise EnergyError(f"{path}: expected a source of {place}, found none")
