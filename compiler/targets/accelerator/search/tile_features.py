"""Loop features of every tile of a space: what the learned model sees of a candidate.

Per buffer and level of an operator's ``Nest``:

- ``inp@step`` and the like: bytes that one iteration of the level touches in a whole tile;
- ``inp.moved``: bytes that cross the port in all, smaller tiles at the edges included, and
  ``inp.again``: how often each byte does;
- ``inp.reuse``: operations per byte moved.

``floor`` are the cycles that a tile can't go below: a bound and no estimate, since the tuner rules
tiles out by it. Counts of iterations, instructions and tokens follow, and the knobs themselves:
numbers as they are, choices one-hot.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.search.table import Features, Table
from vdla.compiler.targets.accelerator.operators.access import Size
from vdla.compiler.targets.accelerator.operators.nest import Columns, Floats, Nest
from vdla.compiler.targets.accelerator.operators.template import Tile, alike
from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes


class Nested(Protocol):
    """A template as its tiles' features need it: the loops around a tile."""

    def nest(self, tile: Tile, config: Config) -> Nest:
        """The loops; sizes may be columns, with an entry for each of many tiles."""


def features(template: Nested, space: Table[Tile], config: Config) -> Features:
    """The features of all tiles of a space."""
    knobs = {
        name: np.array([getattr(tile, name) for tile in space.candidates]) for name in space.knobs
    }
    columns: dict[str, Floats] = {}
    for points, tile in alike(space.candidates):
        nest = template.nest(tile, config)
        part = {**_memory(nest), **_cycles(nest, config), **_counts(nest, tile.vthreads, config)}
        for name, value in part.items():
            columns.setdefault(name, np.empty(len(space)))[points] = value
    columns |= _knobs(space, knobs)
    return Features(tuple(columns), np.stack(list(columns.values()), axis=1))


def _memory(nest: Nest) -> Columns:
    """Touched bytes, traffic and reuse of every buffer."""
    columns: Columns = {}
    for buffer, levels in nest.touched.items():
        columns |= {f"{buffer}@{name}": size for name, size in levels.items()}
        columns[f"{buffer}.moved"] = nest.moved[buffer]
        columns[f"{buffer}.again"] = nest.moved[buffer] / levels["layer"]
        columns[f"{buffer}.reuse"] = nest.ops / nest.moved[buffer]
    columns["moved"] = _sum(nest.moved)
    columns["ops.per.byte"] = nest.ops / columns["moved"]
    return columns


def _cycles(nest: Nest, config: Config) -> Columns:
    """Cycles that a tile takes at the very least; over those of the layer, layers compare.

    Bytes take their time on the bus, operations theirs in the array: no engine does more of them in
    a cycle. The first operation waits for its operands, and the last result for its operation.
    """
    bus = config.bytes_per_cycle
    busy = nest.ops / config.macs_per_cycle
    layer = _sum({buffer: levels["layer"] for buffer, levels in nest.touched.items()})
    floor = np.maximum(_sum(nest.moved) / bus, busy + nest.ends / bus)
    return {"ends": nest.ends, "floor": floor, "floor.again": floor / np.maximum(layer / bus, busy)}


def _counts(nest: Nest, vthreads: Size, config: Config) -> Columns:
    """Iterations, instructions and tokens."""
    columns = {f"trips.{name}": count for name, count in nest.trips.items()}
    columns |= {f"commands.{name}": count for name, count in nest.commands.items()}
    columns["commands"] = _sum(nest.commands)
    columns["commands.bytes"] = columns["commands"] * instruction_bytes(config)
    # LOAD and COMPUTE hand over every part both ways, COMPUTE and STORE every tile.
    columns["tokens"] = 2 * nest.trips["part"] + 2 * nest.trips["tile"]
    columns["ops.per.command"] = nest.ops / columns["commands"]
    columns["tiles.per.thread"] = nest.trips["tile"] / vthreads
    return columns


def _knobs(space: Table[Tile], knobs: Mapping[str, NDArray[np.generic]]) -> dict[str, Floats]:
    """The tile's own fields: numbers as they are, choices one-hot."""
    columns: dict[str, Floats] = {}
    for name, values in space.knobs.items():
        if isinstance(values[0], str):
            columns |= {f"{name}={v}": (knobs[name] == v).astype(np.float64) for v in values}
        else:
            columns[name] = knobs[name].astype(np.float64)
    return columns


def _sum(columns: Columns) -> Size:
    return sum(columns.values())
