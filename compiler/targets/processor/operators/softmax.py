"""A softmax along an axis in front of the last, with what lies behind it in the lanes of vectors.

The axes behind it are a row of columns. A tile of them goes through all steps at once, and what is
between the steps stays in the first-level cache::

    for what is in front, tile of columns:                shared by threads
        for k: top[v] = max …;  for k: e[k, v] = …;  for k: total[v] = Σ …;  for k: out[k, v] = …
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.softmax import Softmax
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.operators.image import divisor
from vdla.compiler.targets.processor.operators.nests import in_registers, schedule_nest
from vdla.compiler.targets.processor.operators.product import vectors_of
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

MOST_VECTORS = 4  # of a tile


@dataclass(frozen=True)
class ColumnSoftmax(Template[Softmax]):
    """``top``, ``total`` and ``share`` are [outer, tiles, v, l], ``e`` is [outer, tiles, K, v, l],
    ``result`` [outer, K, columns]."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Softmax,)

    top: Tensor
    e: Tensor
    total: Tensor
    share: Tensor
    result: Tensor

    @classmethod
    def refusal(cls, node: Softmax, graph: Graph, processor: Processor) -> str | None:
        """Columns that fill whole vectors."""
        kind = graph.tensors[node.data]
        if kind.block:
            return "its channels lie in blocks"
        lanes = vectors_of(processor, kind.dtype).lanes
        columns = prod(kind.shape[node.axis % len(kind.shape) + 1 :])
        if columns < lanes or columns % lanes:
            return "its columns fill no whole vectors"
        return None

    @classmethod
    def of(cls, node: Softmax, recipe: Recipe, processor: Processor) -> ColumnSoftmax:
        """The steps, tile by tile."""
        shape = recipe.shape(node.data)
        axis = node.axis % len(shape)
        outer, size, columns = shape[:axis], shape[axis], prod(shape[axis + 1 :])
        data = recipe.read(node.data, (*outer, size, columns))
        lanes = vectors_of(processor, recipe.out_dtype).lanes
        vectors = divisor(columns // lanes, MOST_VECTORS)
        width = vectors * lanes
        tiles = columns // width

        def element(*i: Expr) -> Expr:
            *where, t, k, v, l = i
            return data[(*where, k, t * width + v * lanes + l)]

        r, k = te.reduce_axis((0, size), "r"), te.reduce_axis((0, size), "k")
        some = (*outer, tiles, vectors, lanes)
        top = te.compute(some, lambda *i: te.max(element(*i[:-2], r, *i[-2:]), axis=r), "top")
        e = te.compute(
            (*outer, tiles, size, vectors, lanes),
            lambda *i: te.exp(element(*i) - top[(*i[:-3], *i[-2:])]),
            "e",
        )
        total = te.compute(some, lambda *i: te.sum(e[(*i[:-2], k, *i[-2:])], axis=k), "total")
        one = te.const(1.0, recipe.out_dtype)
        share = te.compute(some, lambda *i: one / total[i], "share")

        def value(*i: Expr) -> Expr:
            *where, k, f = i
            rest = te.floormod(f, width)
            place = te.floordiv(rest, lanes), te.floormod(rest, lanes)
            tile = *where, te.floordiv(f, width)
            return e[(*tile, k, *place)] * share[(*tile, *place)]

        result = te.compute((*outer, size, columns), value, "softmax")
        return cls(top, e, total, share, result)

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The stages of elements between the steps."""
        return self.e, self.share

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """All steps of a tile of columns, one after the other."""
        stages = [s[tensor] for tensor in (self.share, self.total, self.e, self.top)]
        if result is not self.result:
            for stage in (s[result], *stages):
                schedule_nest(s, stage, self.top.shape[-1])
            return
        out, (*_, vectors, lanes) = s[result], self.top.shape
        *outer, step, columns = out.axis
        t, rest = out.split(columns, factor=vectors * lanes)
        v, l = out.split(rest, factor=lanes)
        in_registers(out, [*outer, t, step], [v], l)
        tile = out.fuse(*outer, t)
        for stage in stages:
            stage.compute_at(out, tile)
            *others, v, l = stage.axis
            in_registers(stage, [*others, *stage.reduce_axis], [v], l)
        out.parallel(tile)
