"""Softmax of integers: Q(Softmax(DQ))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from vdla.compiler.graph.boundaries import int8_source
from vdla.compiler.graph.clusters.cluster import Cluster, End
from vdla.compiler.graph.form import Form, Order
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.softmax import Softmax
from vdla.compiler.graph.types import Requant


@dataclass(frozen=True)
class SoftmaxCluster(Cluster):
    """A softmax along an axis."""

    DIFFERS = "softmax in integers may differ by 1 LSB"

    axis: int

    @classmethod
    def find(cls, node: End, around: Neighbours) -> Self | None:
        """The softmax of int8 that a node quantizes."""
        core = around.maker(node.data, Softmax)
        if core is None or (source := int8_source(core.data, around)) is None:
            return None
        return cls(node, (source,), core.axis)

    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """The axis as pixels; of the others, what were channels or pixels are channels."""
        order = known[0].order() if known[0] else None
        if order is None:
            return None
        rest = tuple(axis for axis in (*order.channels, *order.pixels) if axis != self.axis)
        batch = tuple(axis for axis in order.batch if axis != self.axis)
        return Order(batch, rest, (self.axis,))

    def orders(self, order: Order) -> tuple[Order, ...]:
        """Axes as the result has them."""
        return (order,)

    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The softmax over pixels."""
        return QSoftmax(
            name=name,
            output=output,
            data=images[0],
            step=self.sources[0].scale[0],
            zeros=self.sources[0].zero_point,
            requant=Requant(self.quantize.scale, self.quantize.zero_point[0]),
        )
