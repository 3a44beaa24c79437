"""Trees of tiles: the loop program that a template makes of each.

The nodes are those of the operator's ``Nest``: a chain of loops under a root, and the instructions
inside each loop, which move a tensor or compute. No tile is lowered; sizes are columns, one tree of
columns for all tiles that make the same loops. Numbers are logarithms, choices one-hot:

- of a loop its level, its extent, how often its body runs in all, whether it is one of a reduction,
  and the bytes of each operand that one iteration touches;
- of instructions their role, how many there are in an iteration and in all, the bytes that they
  move in an iteration, and the cycles of them all, on the bus or in the array;
- of the root the tile's own knobs: virtual threads and copies of buffers are seen nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np

from vdla.compiler.search.forest import Forest, Structure
from vdla.compiler.targets.accelerator.operators.access import Size, extent
from vdla.compiler.targets.accelerator.operators.nest import LEVELS, Columns, Issue, Nest
from vdla.compiler.targets.accelerator.operators.template import Tile, alike
from vdla.compiler.targets.accelerator.search.tile_features import Nested
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import IterVar
from vdla.isa.config import Config

ROLES = ("inp", "wgt", "bias", "residual", "gemm", "alu", "out")
TOUCHED = ("inp", "wgt", "out")
NAMES = (
    "root",
    *LEVELS,
    *ROLES,
    *("extent", "turns", "reduced"),
    *(f"{role}.touched" for role in TOUCHED),
    *("count", "commands", "bytes", "cycles"),
)
Nodes = list[tuple[int, Columns]]  # each node's parent, and its features that aren't 0


def forest(template: Nested, tiles: Sequence[Tile], config: Config) -> Forest:
    """The trees of some tiles, at least one; their knobs come last among the nodes' features."""
    names = (*NAMES, *(f"knob.{name}" for name in _knobs(tiles[0])))
    column = {name: i for i, name in enumerate(names)}
    structures: dict[Structure, int] = {}
    which, parts = np.empty(len(tiles), np.int64), []
    for points, tile in alike(tiles):
        nodes = _nodes(template.nest(tile, config), tile, config)
        rows = np.zeros((len(points), len(nodes), len(names)), np.float32)
        for number, (_, features) in enumerate(nodes):
            for name in features.keys() & column.keys():  # templates may have roles of their own
                rows[:, number, column[name]] = features[name]
        parents = tuple(parent for parent, _ in nodes)
        which[points] = structures.setdefault(parents, len(structures))
        parts.append((points, rows))
    result = np.zeros((len(tiles), max(map(len, structures)), len(names)), np.float32)
    for points, rows in parts:
        result[points, : rows.shape[1]] = rows
    return Forest(names, tuple(structures), which, result)


def _nodes(nest: Nest, tile: Tile, config: Config) -> Nodes:
    """The nodes of tiles that make the same loops, parents first."""
    knobs = {f"knob.{name}": _log(getattr(tile, name)) for name in _knobs(tile)}
    turns = list(_turns(nest))
    nodes: Nodes = [(-1, {"root": 1.0, **knobs})]
    nodes += [(depth, _loop(nest, depth, turns)) for depth in range(len(nest.loops))]
    nodes += [(issue.inside, _issue(nest, issue, turns, config)) for issue in nest.issues]
    return nodes


def _loop(nest: Nest, depth: int, turns: list[Size]) -> Columns:
    """Features of the loop inside ``depth`` others."""
    loop = nest.loops[depth]
    touched = {
        f"{issue.role}.touched": _log(_bytes(nest, issue.tensor, depth + 1))
        for issue in reversed(nest.issues)
        if issue.tensor is not None and issue.role in TOUCHED
    }
    reduced = isinstance(loop.axis, IterVar) and loop.axis.kind == "reduce"
    return {
        loop.level: 1.0,
        "extent": _log(turns[depth + 1] / turns[depth]),
        "turns": _log(turns[depth + 1]),
        "reduced": float(reduced),
        **touched,
    }


def _issue(nest: Nest, issue: Issue, turns: list[Size], config: Config) -> Columns:
    """Features of instructions."""
    again = turns[issue.inside]
    moved: Size = 0
    cycles: Size = nest.ops / config.macs_per_cycle
    if issue.tensor is not None:
        moved = _bytes(nest, issue.tensor, issue.inside)
        cycles = moved * again / config.bytes_per_cycle
    return {
        issue.role: 1.0,
        "count": _log(issue.count),
        "commands": _log(issue.count * again),
        "bytes": _log(moved),
        "cycles": _log(cycles),
    }


def _turns(nest: Nest) -> Iterator[Size]:
    """Number of times that what is inside the outermost 0, 1, … loops runs."""
    turns: Size = 1
    left: dict[object, Size] = {}
    yield turns
    for loop in nest.loops:
        turns = turns * -(-left.get(loop.axis, extent(loop.axis)) // loop.size)
        left[loop.axis] = loop.size
        yield turns


def _bytes(nest: Nest, tensor: Tensor, inside: int) -> Size:
    """Bytes of a tensor under a full portion of so many loops."""
    return nest.held(tensor, inside) * np.dtype(tensor.dtype).itemsize


def _knobs(tile: Tile) -> list[str]:
    """Fields of tiles that are numbers, or true or false."""
    return [f.name for f in fields(tile) if f.type in ("int", "bool")]


def _log(value: Size) -> Size:
    return np.log2(1 + np.asarray(value, np.float64))
