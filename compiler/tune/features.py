"""Loop features of every tile of a space: what the learned model sees of a candidate.

A schedule is a nest of four loop levels, outermost first: the **layer**, a **tile** of its output,
a **step** of the tile's reduction and a **part** of the step's weights. Per buffer and level:

- ``inp@step`` and the like: bytes that one iteration of the level touches;
- ``inp.moved``: bytes that cross the port in all, and ``inp.again``: how often each byte does;
- ``inp.reuse``: operations per byte moved.

Counts of iterations, instructions and tokens follow, and the knobs themselves: numbers as they are,
choices one-hot. All are computed from shape and knobs, for thousands of tiles at once: lowering a
candidate to read the same off its loops costs half a second, and annealing looks at every tile.
``tests/compiler/tune/test_features.py`` holds them against the lowered loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.topi.vdla.conv2d import ConvShape
from vdla.compiler.topi.vdla.elementwise import AddShape
from vdla.compiler.topi.vdla.pool import PoolShape
from vdla.compiler.topi.vdla.tiling import Shape
from vdla.compiler.tune.space import Space
from vdla.isa.config import Config
from vdla.isa.instructions import instruction_bytes

Floats = NDArray[np.float64]
Columns = dict[str, Floats]
LEVELS = ("layer", "tile", "step", "part")


@dataclass(frozen=True)
class Features:
    """A matrix [tiles, features] with the features' names."""

    names: tuple[str, ...]
    values: Floats

    def row(self, point: int) -> dict[str, float]:
        """One tile's features by name."""
        return dict(zip(self.names, map(float, self.values[point]), strict=True))


@dataclass(frozen=True)
class _Nest:
    """The loops of an operator's tiles, one entry per tile of the space in every array.

    ``trips`` counts the iterations of each level in all. ``touched[buffer][level]`` are bytes per
    iteration; ``level[buffer]`` is where the buffer is moved. ``commands`` is how many
    instructions one iteration at that level issues for it.
    """

    ops: float
    trips: Mapping[str, Floats]
    touched: Mapping[str, Mapping[str, Floats]]
    level: Mapping[str, NDArray[np.str_]]
    commands: Mapping[str, Floats]


def features(shape: Shape, space: Space, config: Config) -> Features:
    """The features of all tiles of a space."""
    knobs = {
        name: np.array([getattr(tile, name) for tile in space.tiles]) for name in space.knobs
    }
    if isinstance(shape, ConvShape):
        nest = _conv(shape, knobs, config)
    elif isinstance(shape, PoolShape):
        nest = _pool(shape, knobs, config)
    else:
        nest = _add(shape, knobs, config)
    columns = {**_memory(nest), **_counts(nest, knobs, config), **_knobs(space, knobs)}
    full = [np.broadcast_to(c, len(space)) for c in columns.values()]
    return Features(tuple(columns), np.stack(full, axis=1).astype(np.float64))


def _memory(nest: _Nest) -> Columns:
    """Touched bytes, traffic and reuse of every buffer."""
    columns: Columns = {}
    for buffer, levels in nest.touched.items():
        for name, size in levels.items():
            columns[f"{buffer}@{name}"] = size
        moved = _moved(nest, buffer)
        columns[f"{buffer}.moved"] = moved
        columns[f"{buffer}.again"] = moved / levels["layer"]
        columns[f"{buffer}.reuse"] = nest.ops / moved
    moved = sum((_moved(nest, b) for b in nest.touched), np.zeros(1))
    columns["moved"] = moved
    columns["ops.per.byte"] = nest.ops / moved
    return columns


def _moved(nest: _Nest, buffer: str) -> Floats:
    """Bytes that cross the port: what the level touches, as often as it runs."""
    at, levels = nest.level[buffer], nest.touched[buffer]
    names = list(levels)
    sizes = [np.asarray(levels[n] * nest.trips[n], np.float64) for n in names]
    return np.select([at == n for n in names], sizes)


def _counts(nest: _Nest, knobs: Mapping[str, Any], config: Config) -> Columns:
    """Iterations, instructions and tokens."""
    columns = {f"trips.{name}": count for name, count in nest.trips.items() if name != "layer"}
    total: Floats = np.zeros(1)
    for buffer, each in nest.commands.items():
        at = nest.level.get(buffer, np.array("part"))
        trips = np.select([at == n for n in nest.trips], [*nest.trips.values()])
        columns[f"commands.{buffer}"] = trips * each
        total = total + trips * each
    columns["commands"] = total
    columns["commands.bytes"] = total * instruction_bytes(config)
    # LOAD and COMPUTE hand over every part both ways, COMPUTE and STORE every tile.
    columns["tokens"] = 2 * nest.trips["part"] + 2 * nest.trips["tile"]
    columns["ops.per.command"] = nest.ops / total
    columns["tiles.per.thread"] = nest.trips["tile"] / knobs["vthreads"]
    return columns


def _knobs(space: Space, knobs: Mapping[str, Any]) -> Columns:
    """The tile's own fields: numbers as they are, choices one-hot; a fixed one says nothing."""
    columns: Columns = {}
    for name, values in space.knobs.items():
        if isinstance(values[0], str):
            columns.update({f"{name}={v}": (knobs[name] == v).astype(np.float64) for v in values})
        else:
            columns[name] = knobs[name].astype(np.float64)
    return columns


# The nests ---------------------------------------------------------------------------------------


def _conv(shape: ConvShape, k: Mapping[str, Any], config: Config) -> _Nest:
    block, taps = config.channel_block, shape.kernel[0] * shape.kernel[1]
    down, across = _ceil(shape.out_height, k["rows"]), _ceil(shape.out_width, k["cols"])
    tiles = shape.batch * shape.groups * (shape.outputs // k["outputs"]) * down * across
    steps, parts = shape.inputs // k["inputs"], k["outputs"] // k["weights"]
    trips = {
        "layer": np.ones(len(tiles)),
        "tile": tiles.astype(np.float64),
        "step": (tiles * steps).astype(np.float64),
        "part": (tiles * steps * parts).astype(np.float64),
    }
    window = _window(shape, k, shape.steps, shape.sampling)
    image = np.full(len(tiles), float(shape.height * shape.width))
    pixels = k["rows"] * k["cols"]
    everything = shape.batch * shape.groups * shape.out_height * shape.out_width
    weight = float(block * block * taps)
    outs = shape.batch * shape.groups * shape.outputs
    touched: dict[str, dict[str, Floats]] = {
        "inp": {
            "layer": image * shape.batch * shape.groups * shape.inputs * block,
            "tile": window * shape.inputs * block,
            "step": window * k["inputs"] * block,
        },
        "wgt": {
            "layer": np.full(len(tiles), weight * shape.groups * shape.outputs * shape.inputs),
            "tile": weight * k["outputs"] * shape.inputs,
            "step": weight * k["outputs"] * k["inputs"],
            "part": weight * k["weights"] * k["inputs"],
        },
        "out": {
            "layer": np.full(len(tiles), float(everything * shape.outputs * block)),
            "tile": k["outputs"] * pixels * float(block),
            "part": k["weights"] * pixels * float(block),
        },
        "bias": {  # with the scales: two int32 per channel
            "layer": np.full(len(tiles), 8.0 * shape.groups * shape.outputs * block),
            "tile": 8.0 * k["outputs"] * block,
        },
    }
    resident = k.get("resident", np.zeros(len(tiles), np.bool_))
    level = {
        "inp": np.array("step"),
        "wgt": np.array("part"),
        "out": np.array("tile"),
        "bias": np.where(resident, "layer", "tile"),
    }
    commands: dict[str, Floats] = {
        "inp": k["inputs"].astype(np.float64),
        "wgt": np.ones(1),
        "gemm": np.ones(1),
        "out": k["outputs"].astype(np.float64),
        "bias": np.full(1, 2.0),
    }
    if shape.residual is not None:
        touched["residual"] = touched["out"]
        level["residual"] = level["out"]
        commands["residual"] = commands["out"] + 2  # and the ALU's
    macs = float(outs * block * shape.out_height * shape.out_width * shape.inputs * block * taps)
    return _Nest(macs, trips, touched, level, commands)


def _pool(shape: PoolShape, k: Mapping[str, Any], config: Config) -> _Nest:
    block = float(config.channel_block)
    down, across = _ceil(shape.out_height, k["rows"]), _ceil(shape.out_width, k["cols"])
    tiles = shape.batch * (shape.blocks // k["blocks"]) * down * across
    out = shape.batch * shape.blocks * shape.out_height * shape.out_width * block
    seen = shape.batch * shape.blocks * shape.height * shape.width * block
    touched = {
        "inp": {
            "layer": np.full(len(tiles), seen),
            "tile": _window(shape, k, shape.strides, (1, 1)) * k["blocks"] * block,
        },
        "out": {
            "layer": np.full(len(tiles), out),
            "tile": k["rows"] * k["cols"] * k["blocks"] * block,
        },
    }
    commands = {"inp": k["blocks"] * 1.0, "alu": np.ones(1), "out": k["blocks"] * 1.0}
    return _flat(out * shape.kernel[0] * shape.kernel[1], tiles, touched, commands)


def _add(shape: AddShape, k: Mapping[str, Any], config: Config) -> _Nest:
    tiles = _ceil(shape.vectors, k["vectors"])
    whole = np.full(len(tiles), float(shape.vectors * config.out_entry))
    size = k["vectors"] * float(config.out_entry)
    touched = {
        "inp": {"layer": 2 * whole, "tile": 2 * size},
        "out": {"layer": whole, "tile": size},
    }
    commands = {"inp": np.full(1, 2.0), "alu": np.ones(1), "out": np.ones(1)}
    return _flat(float(whole[0]), tiles, touched, commands)


def _flat(
    ops: float,
    tiles: NDArray[np.int64],
    touched: Mapping[str, Mapping[str, Floats]],
    commands: Mapping[str, Floats],
) -> _Nest:
    """A nest without a reduction over steps: each tile is one step of one part."""
    trips = {"layer": np.ones(len(tiles))}
    trips |= {name: tiles.astype(np.float64) for name in LEVELS[1:]}
    level = {buffer: np.array("tile") for buffer in touched}
    return _Nest(ops, trips, touched, level, commands)


def _window(
    shape: ConvShape | PoolShape,
    k: Mapping[str, Any],
    steps: tuple[int, int],
    sampling: tuple[int, int],
) -> Floats:
    """Pixels of the image under a whole tile."""
    sizes = zip(("rows", "cols"), (shape.height, shape.width), range(2), strict=True)
    spans = []
    for name, size, i in sizes:
        span = (k[name] - 1) * steps[i] + (shape.kernel[i] - 1) * shape.dilations[i] + 1
        spans.append(np.minimum(span, -(-size // sampling[i])))
    return np.asarray(spans[0] * spans[1], np.float64)


def _ceil(total: int, size: NDArray[np.int64]) -> NDArray[np.int64]:
    result: NDArray[np.int64] = -(-total // size)
    return result
