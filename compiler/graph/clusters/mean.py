"""Means of integers: Q(mean(DQ))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from vdla.compiler.graph.boundaries import int8_source
from vdla.compiler.graph.clusters.cluster import Cluster, End
from vdla.compiler.graph.form import Form, Order
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.numbers import pool_scale
from vdla.compiler.graph.ops.pool import QAvgPool
from vdla.compiler.graph.ops.reduce import Reduce
from vdla.compiler.graph.types import Requant, Shape


@dataclass(frozen=True)
class Mean(Cluster):
    """The mean along some axes, which stay with size 1 or go away."""

    axes: tuple[int, ...]
    kept: bool
    shape: Shape

    @classmethod
    def find(cls, node: End, around: Neighbours) -> Self | None:
        """The mean of int8 that a node quantizes."""
        core = around.maker(node.data, Reduce)
        if core is None or core.function != "mean":
            return None
        source = int8_source(core.data, around)
        return (
            cls(node, (source,), core.axes, core.keepdims, around.shape(core.data))
            if source
            else None
        )

    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """Order of the source: its axes as a batch and as channels."""
        order = known[0].order() if known[0] else None
        if order is None or {*order.batch} & {*self.axes}:
            return None
        rest = tuple(n for n in (*order.channels, *order.pixels) if n not in self.axes)
        if not self.kept:
            places = [tuple(map(self.left.index, axes)) for axes in (order.batch, rest)]
            return Order(places[0], places[1], ())
        return Order((*order.batch, *self.axes), rest, ())

    @property
    def left(self) -> list[int]:
        """The source's axes that the result has, where others go away."""
        return [n for n in range(len(self.shape)) if n not in self.axes]

    def orders(self, order: Order) -> tuple[Order, ...]:
        """The axes of the mean as pixels."""
        if self.kept:
            batch = tuple(n for n in order.batch if n not in self.axes)
            return (Order(batch, order.channels, self.axes),)
        batch, channels = (tuple(self.left[n] for n in axes) for axes in order[:2])
        return (Order(batch, channels, self.axes),)

    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The mean of all pixels."""
        source, result = self.sources[0], self.quantize
        count = prod(self.shape[axis] for axis in self.axes)
        scale = pool_scale(source.scale[0], result.scale[0], count)
        return QAvgPool(
            name=name,
            output=output,
            data=images[0],
            zeros=source.zero_point,
            requant=Requant((scale,), result.zero_point[0]),
            kernel=(1, count),
            strides=(1, 1),
            pads=(0, 0, 0, 0),
            dilations=(1, 1),
        )
