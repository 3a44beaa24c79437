"""A reduction of elements that don't lie side by side, with those that do in the lanes of vectors.

The axes behind the last reduced one are a row of columns. What is known so far of a band of them
stays in the first-level cache, so that data are read row by row, and of a tile of vectors in
registers for a few steps::

    for what is kept in front, band of columns:           shared by threads
        for some steps of the reduction:
            for tile of columns: for step: for vector:
                acc[tile, vector] = combined(acc[tile, vector], data[step, tile, vector])

Columns that fill no whole number of tiles end in a tile that begins earlier, so that some of them
are computed twice and no lane is idle. Of long sums of float32, parts are summed up first: a sum is
off by as many roundings as it has steps one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isqrt, prod
from typing import ClassVar, cast

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.elementwise import wide
from vdla.compiler.graph.ops.reduce import ArgReduce, Reduce
from vdla.compiler.graph.types import Shape
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.operators.image import divisor, even_part
from vdla.compiler.targets.processor.operators.nests import (
    LONG_SUM,
    in_registers,
    schedule_nest,
    share,
)
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Expr
from vdla.support.numbers import ceil_div

MOST_VECTORS = 8  # of a tile
BAND_COLUMNS = 1024
AT_ONCE = 4  # steps of a tile
FEWEST_STEPS = 4  # of a reduction, for which its results are worth a copy


@dataclass(frozen=True)
class Reduction(Template[Reduce | ArgReduce]):
    """``best`` [..., bands, tiles, v, l] are the results of the reduction, and ``result`` [...,
    columns] the node's, whose axes of columns are one."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Reduce, ArgReduce)

    best: Tensor
    result: Tensor

    @classmethod
    def refusal(cls, node: Reduce | ArgReduce, graph: Graph, processor: Processor) -> str | None:
        """Columns that fill a vector, and steps enough."""
        kind = graph.tensors[node.data]
        if kind.block:
            return "its channels lie in blocks"
        groups = _groups(kind.shape, node.reduced_axes)
        if not groups or groups[-1].reduced or groups[-1].size < processor.vectors.lanes:
            return "its columns fill no vector"
        if prod(group.size for group in groups if group.reduced) < FEWEST_STEPS:
            return "it has few steps"
        return None

    @classmethod
    def of(cls, node: Reduce | ArgReduce, recipe: Recipe, processor: Processor) -> Reduction:
        """The tiles, and where their columns are in the result."""
        groups = _groups(recipe.shape(node.data), node.reduced_axes)
        data = recipe.read(node.data, tuple(group.size for group in groups))
        steps = [te.reduce_axis((0, g.size), "r") for g in groups if g.reduced]
        *outer, columns = (g.size for g in groups if not g.reduced)
        lanes = processor.vectors.lanes
        vectors = _vectors_of_a_tile(columns, lanes)
        width = vectors * lanes
        tiles = ceil_div(columns, width)
        band = even_part(tiles, BAND_COLUMNS // width)

        def value(*i: Expr) -> Expr | tuple[Expr, ...]:
            *where, most, t, v, l = i
            start = (most * band + t) * width
            if columns % (band * width):
                start = te.minimum(start, columns - width)
            kept, stepped = iter((*where, start + v * lanes + l)), iter(steps)
            index = (next(stepped if group.reduced else kept) for group in groups)
            return node.reduced(wide(data[tuple(index)]), steps)

        shape = (*outer, ceil_div(tiles, band), band, vectors, lanes)
        best = cast("Tensor | tuple[Tensor, ...]", te.compute(shape, value, "best"))
        first = best[0] if isinstance(best, tuple) else best

        def element(*i: Expr) -> Expr:
            *where, f = i
            rest = te.floormod(f, width)
            if columns % width:
                rest = te.maximum(rest, f - (columns - width))
            tile = te.floordiv(f, width)
            vector = te.floordiv(rest, lanes), te.floormod(rest, lanes)
            place = te.floordiv(tile, band), te.floormod(tile, band), *vector
            return node.finished(first[(*where, *place)], recipe)

        return cls(first, te.compute((*outer, columns), element, "result"))

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Tiles of registers, which threads share."""
        best, width = s[self.best], prod(self.best.shape[-3:])
        _reduce_in_registers(s, best)
        if result is not self.result or len(best.op.outputs) > 1 or result.shape[-1] % width:
            share(best, best.leaf_iter_vars[: len(self.best.shape) - 3], prod(self.best.shape))
            schedule_nest(s, s[result], self.best.shape[-1])
            return
        out = s[result]
        *outer, columns = out.axis
        t, rest = out.split(columns, factor=width)
        _, l = out.split(rest, factor=self.best.shape[-1])
        out.vectorize(l)
        tile = out.fuse(*outer, t)
        best.compute_at(out, tile)
        out.parallel(tile)


def _reduce_in_registers(s: Schedule, best: Stage) -> None:
    """Schedules tiles of a reduction; long sums of float32 as sums of partial sums."""
    assert isinstance(best.op, ComputeOp)
    outputs, steps = best.op.outputs, prod(axis.extent for axis in best.op.reduce_axis)
    parts = best
    if len(outputs) == 1 and outputs[0].dtype == "float32" and steps > LONG_SUM:
        longest = max(best.reduce_axis, key=best.extent)
        size, count = best.extent(longest), isqrt(steps)
        if count < size:
            even = divisor(size, count)
            longest, _ = best.split(longest, nparts=size // even if even >= AT_ONCE else count)
        partial = s.rfactor(best.name, longest)
        assert isinstance(partial, Tensor)
        *outer, v, l = best.axis
        in_registers(best, [*outer, *best.reduce_axis], [v], l)
        parts = s[partial]
        parts.compute_at(best, outer[-2])
    *outer, tile, v, l = parts.axis
    *before, last = parts.reduce_axis
    few, step = parts.split(last, factor=divisor(parts.extent(last), AT_ONCE))
    parts.reorder(*outer, *before, few, tile, step, v, l)
    for axis in (step, v):
        parts.unroll(axis)
    parts.vectorize(l)


# The axes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Group:
    """Neighbouring axes that are all reduced or all kept, as one."""

    reduced: bool
    size: int


def _groups(shape: Shape, reduced: Sequence[int]) -> list[_Group]:
    """A shape as groups of axes, kept and reduced in turns."""
    by_kind = groupby(enumerate(shape), lambda axis: axis[0] in reduced)
    return [_Group(kind, prod(size for _, size in axes)) for kind, axes in by_kind]


def _vectors_of_a_tile(columns: int, lanes: int) -> int:
    """Vectors of a tile: of which all tiles together have the fewest."""
    most = min(columns // lanes, MOST_VECTORS)
    return min(
        range(ceil_div(most, 2), most + 1), key=lambda n: (ceil_div(columns, n * lanes) * n, -n)
    )
