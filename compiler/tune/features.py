"""Loop features of every tile of a space: what the learned model sees of a candidate.

A schedule is a nest of four loop levels, outermost first: the **layer**, a **tile** of its output,
a **step** of the tile's reduction and a **part** of the step's weights. Per buffer and level:

- ``inp@step`` and the like: bytes that one iteration of the level touches in a whole tile;
- ``inp.moved``: bytes that cross the port in all, smaller tiles at the edges included, and
  ``inp.again``: how often each byte does;
- ``inp.reuse``: operations per byte moved.

``floor`` are the cycles that a tile can't go below: a bound and no estimate, since the tuner rules
tiles out by it. Counts of iterations, instructions and tokens follow, and the knobs themselves:
numbers as they are, choices one-hot. All are computed from shape and knobs, for thousands of tiles
at once: lowering a candidate to read the same off its loops costs half a second, and annealing
looks at every tile. ``tests/compiler/tune/test_features.py`` holds them against the lowered loops,
and the floors against the simulator.
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


@dataclass(frozen=True)
class Features:
    """A matrix [tiles, features] with the features' names."""

    names: tuple[str, ...]
    values: Floats

    @property
    def floor(self) -> Floats:
        """Cycles that each tile takes at the very least."""
        return self.values[:, self.names.index("floor")]

    def row(self, point: int) -> dict[str, float]:
        """One tile's features by name."""
        return dict(zip(self.names, map(float, self.values[point]), strict=True))


@dataclass(frozen=True)
class _Nest:
    """The loops of an operator's tiles, one entry per tile of the space in every array.

    ``trips`` counts the iterations of each level in all. ``touched[buffer][level]`` are bytes per
    iteration, ``moved`` bytes in all, ``commands`` instructions in all. ``ends`` are the bytes that
    nothing hides: what the first operation waits for, and what is stored after the last.
    """

    ops: float
    trips: Columns
    touched: Mapping[str, Columns]
    moved: Columns
    commands: Columns
    ends: Floats


def features(shape: Shape, space: Space, config: Config) -> Features:
    """The features of all tiles of a space."""
    knobs = {name: np.array([getattr(tile, name) for tile in space.tiles]) for name in space.knobs}
    if isinstance(shape, ConvShape):
        nest = _conv(shape, knobs, config)
    elif isinstance(shape, PoolShape):
        nest = _pool(shape, knobs, config)
    else:
        nest = _add(shape, knobs, config)
    columns = {
        **_memory(nest),
        **_cycles(nest, config),
        **_counts(nest, knobs, config),
        **_knobs(space, knobs),
    }
    full = [np.broadcast_to(c, len(space)) for c in columns.values()]
    return Features(tuple(columns), np.stack(full, axis=1).astype(np.float64))


def _memory(nest: _Nest) -> Columns:
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


def _cycles(nest: _Nest, config: Config) -> Columns:
    """Cycles that a tile takes at the very least; over those of the layer, layers compare.

    Bytes take their time on the bus, operations theirs in the array: no engine does more of them in
    a cycle. The first operation waits for its operands, and the last result for its operation.
    """
    bus = min(config.memory.bytes_per_cycle, config.port_bytes)
    busy = nest.ops / config.macs_per_cycle
    layer = _sum({buffer: levels["layer"] for buffer, levels in nest.touched.items()})
    floor = np.maximum(_sum(nest.moved) / bus, busy + nest.ends / bus)
    return {"ends": nest.ends, "floor": floor, "floor.again": floor / np.maximum(layer / bus, busy)}


def _counts(nest: _Nest, knobs: Mapping[str, Any], config: Config) -> Columns:
    """Iterations, instructions and tokens."""
    columns = {f"trips.{name}": count for name, count in nest.trips.items()}
    columns |= {f"commands.{name}": count for name, count in nest.commands.items()}
    columns["commands"] = _sum(nest.commands)
    columns["commands.bytes"] = columns["commands"] * instruction_bytes(config)
    # LOAD and COMPUTE hand over every part both ways, COMPUTE and STORE every tile.
    columns["tokens"] = 2 * nest.trips["part"] + 2 * nest.trips["tile"]
    columns["ops.per.command"] = nest.ops / columns["commands"]
    columns["tiles.per.thread"] = nest.trips["tile"] / knobs["vthreads"]
    return columns


def _knobs(space: Space, knobs: Mapping[str, Any]) -> Columns:
    """The tile's own fields: numbers as they are, choices one-hot."""
    columns: Columns = {}
    for name, values in space.knobs.items():
        if isinstance(values[0], str):
            columns |= {f"{name}={v}": (knobs[name] == v).astype(np.float64) for v in values}
        else:
            columns[name] = knobs[name].astype(np.float64)
    return columns


# The nests ---------------------------------------------------------------------------------------


def _conv(shape: ConvShape, k: Mapping[str, Any], config: Config) -> _Nest:
    block, taps = float(config.channel_block), shape.kernel[0] * shape.kernel[1]
    images, chunks = shape.batch * shape.groups, shape.outputs // k["outputs"]
    rows, cols = _axis(shape, k, 0), _axis(shape, k, 1)
    tiles = images * chunks * rows.tiles * cols.tiles
    steps, parts = shape.inputs // k["inputs"], k["outputs"] // k["weights"]
    trips = {"tile": tiles, "step": tiles * steps, "part": tiles * steps * parts}
    window, pixels = rows.window * cols.window, k["rows"] * k["cols"]
    every = np.ones(len(tiles))
    out = {
        "layer": every * images * shape.outputs * shape.out_height * shape.out_width * block,
        "tile": k["outputs"] * pixels * block,
        "part": k["weights"] * pixels * block,
    }
    touched: dict[str, Columns] = {
        "inp": {
            "layer": every * images * shape.inputs * rows.seen * cols.seen * block,
            "tile": shape.inputs * window * block,
            "step": k["inputs"] * window * block,
        },
        "wgt": {
            "layer": every * shape.groups * shape.outputs * shape.inputs * taps * block * block,
            "tile": k["outputs"] * shape.inputs * taps * block * block,
            "step": k["outputs"] * k["inputs"] * taps * block * block,
            "part": k["weights"] * k["inputs"] * taps * block * block,
        },
        "out": out,
        "bias": {  # with the scales: two int32 per channel
            "layer": every * 8 * shape.groups * shape.outputs * block,
            "tile": 8 * k["outputs"] * block,
        },
    }
    again = np.where(k["keep"] == "inp", 1, chunks)  # how often the image is loaded
    loads = {
        "inp": trips["step"] / chunks * again,
        "wgt": np.where(k["keep"] == "wgt", images * chunks * steps * parts, trips["part"]),
    }
    moved = {
        "inp": images * again * shape.inputs * rows.moved * cols.moved * block,
        "wgt": touched["wgt"]["part"] * loads["wgt"],
        "out": out["layer"],
        "bias": np.where(k["resident"], touched["bias"]["layer"], touched["bias"]["tile"] * tiles),
    }
    commands = {
        "inp": loads["inp"] * k["inputs"],
        "wgt": loads["wgt"],
        "gemm": trips["part"],
        "out": tiles * parts,
        "bias": 2 * np.where(k["resident"], 1, tiles),
    }
    if shape.residual is not None:
        touched["residual"], moved["residual"] = out, out["layer"]
        commands["residual"] = tiles * (k["outputs"] + 2)  # loads, and the ALU's two
    macs = images * shape.outputs * shape.out_height * shape.out_width * shape.inputs * taps
    first = k["inputs"] * rows.first * cols.first * block + touched["wgt"]["part"]
    ends = first + k["weights"] * rows.last * cols.last * block
    return _Nest(float(macs * block * block), trips, touched, moved, commands, ends)


def _pool(shape: PoolShape, k: Mapping[str, Any], config: Config) -> _Nest:
    rows, cols = _axis(shape, k, 0), _axis(shape, k, 1)
    tiles = shape.batch * (shape.blocks // k["blocks"]) * rows.tiles * cols.tiles
    whole = np.full(len(tiles), float(shape.batch * shape.blocks * config.channel_block))
    out = whole * shape.out_height * shape.out_width
    part = k["blocks"] * float(config.channel_block)
    touched = {
        "inp": {"layer": whole * rows.seen * cols.seen, "tile": part * rows.window * cols.window},
        "out": {"layer": out, "tile": part * k["rows"] * k["cols"]},
    }
    moved = {"inp": whole * rows.moved * cols.moved, "out": out}
    commands = {"inp": tiles * k["blocks"], "alu": tiles, "out": tiles * k["blocks"]}
    ops = float(out[0] * shape.kernel[0] * shape.kernel[1])
    ends = part * (rows.first * cols.first + rows.last * cols.last)
    return _Nest(ops, _flat(tiles), touched, moved, commands, ends)


def _add(shape: AddShape, k: Mapping[str, Any], config: Config) -> _Nest:
    tiles = -(-shape.vectors // k["vectors"])
    out = np.full(len(tiles), float(shape.vectors * config.out_entry))
    tile = k["vectors"] * float(config.out_entry)
    touched = {"inp": {"layer": 2 * out, "tile": 2 * tile}, "out": {"layer": out, "tile": tile}}
    commands = {"inp": 2 * tiles, "alu": tiles, "out": tiles}
    last = (shape.vectors - (tiles - 1) * k["vectors"]) * float(config.out_entry)
    moved = {"inp": 2 * out, "out": out}
    return _Nest(float(out[0]), _flat(tiles), touched, moved, commands, 2 * tile + last)


def _flat(tiles: Any) -> Columns:
    """The trips of a nest without a reduction: each tile is one step of one part."""
    return dict.fromkeys(("tile", "step", "part"), tiles)


@dataclass(frozen=True)
class _Axis:
    """One axis of the image: how many ``tiles`` cut it, and input positions along it.

    ``window`` lie under a whole tile, ``first`` under the first, ``moved`` under all tiles one
    after the other, ``seen`` under any. ``last`` are the outputs of the last tile.
    """

    tiles: Floats
    window: Floats
    first: Floats
    moved: Floats
    last: Floats
    seen: int


def _axis(shape: ConvShape | PoolShape, k: Mapping[str, Any], axis: int) -> _Axis:
    size = (shape.height, shape.width)[axis]
    total = (shape.out_height, shape.out_width)[axis]
    stride, reach = shape.strides[axis], (shape.kernel[axis] - 1) * shape.dilations[axis] + 1
    # A convolution loads nothing that its strides skip under a kernel of one.
    skip = shape.sampling[axis] if isinstance(shape, ConvShape) else 1

    def under(first: int, last: int) -> int:
        """Positions of the image under some outputs."""
        low = max(first * stride - shape.pads[axis], 0)
        high = min((last - 1) * stride - shape.pads[axis] + reach, size)
        return max(-(-(high - low) // skip), 0)

    found = {}
    for tile in set(k[("rows", "cols")[axis]].tolist()):
        cuts = [(first, min(first + tile, total)) for first in range(0, total, tile)]
        each = [under(*cut) for cut in cuts]
        found[tile] = (len(cuts), max(each), each[0], sum(each), cuts[-1][1] - cuts[-1][0])
    columns = np.array([found[tile] for tile in k[("rows", "cols")[axis]].tolist()], np.float64)
    tiles, window, first, moved, last = columns.T
    return _Axis(tiles, window, first, moved, last, under(0, total))


def _sum(columns: Columns) -> Floats:
    return np.asarray(np.sum(np.stack(list(columns.values())), axis=0), np.float64)
