"""Normalizations of integers.

Q((x - mean) / √(mean((x - mean)²) + epsilon) * gamma + beta), x = DQ; the RMS form has no mean, and
factor and offset may be missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from vdla.compiler.graph.boundaries import int8_source
from vdla.compiler.graph.clusters.cluster import Cluster, End
from vdla.compiler.graph.clusters.matcher import deviation_of
from vdla.compiler.graph.form import Form, Order
from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.normalize import QNormalize, Terms
from vdla.compiler.graph.ops.quantize import AnyDequantize, Quantize
from vdla.compiler.graph.ops.wide import Dequantize16
from vdla.compiler.graph.ops.wide_normalize import QWideNormalize, WideMoments
from vdla.compiler.graph.types import Array, Requant


@dataclass(frozen=True)
class Normalization(Cluster):
    """A normalization along ``axes``, with a factor and an offset for each of their elements."""

    DIFFERS = "a normalization in integers may differ by 1 LSB"
    WIDE = True

    axes: tuple[int, ...]
    rank: int
    centered: bool
    epsilon: float
    gamma: Array
    beta: Array

    @classmethod
    def find(cls, node: End, around: Neighbours) -> Self | None:
        """The normalization of int8, or of 16 bits, that a node quantizes."""
        whole = deviation_of(node.data, around)
        source = _source(whole.data, node, around) if whole else None
        if whole is None or source is None:
            return None
        rank = len(around.shape(whole.data))
        terms = whole.centered, whole.epsilon, whole.gamma, whole.beta
        return cls(node, (source,), whole.axes, rank, *terms)

    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """Order in which the normalized axes lie in pixels, and those beside them in channels."""
        order = known[0].order() if known[0] else None
        batch = order.batch if order else tuple(range(self.rank - 2))
        batch = tuple(axis for axis in batch if axis not in self.axes)
        rest = [n for n in range(self.rank) if n not in self.axes and n not in batch]
        return Order(batch, tuple(rest), self.axes)

    def orders(self, order: Order) -> tuple[Order, ...]:
        """Channels and pixels in each other's place."""
        return (Order(order.batch, order.pixels, order.channels),)

    def constants(self) -> dict[str, Array]:
        """Factors and offsets in integers."""
        return {"factor": self._terms.factor, "offset": self._terms.offset}

    @property
    def _reads16(self) -> bool:
        """Whether the data have 16 bits."""
        return isinstance(self.sources[0], Dequantize16)

    @cached_property
    def _terms(self) -> Terms:
        step = self.quantize.scale[0]
        gamma, beta = self.gamma / step, self.beta / step
        if not self._reads16:
            return Terms.of(gamma, beta)
        unit = WideMoments(len(gamma)).unit
        if isinstance(self.quantize, Quantize):
            return Terms.of(gamma, beta, unit)
        return Terms.of(gamma, beta, unit, finest=1.0)

    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The normalization over channels."""
        source, terms, zero = self.sources[0], self._terms, self.quantize.zero_point[0]
        epsilon, requant = self.epsilon / source.scale[0] ** 2, Requant((terms.scale,), zero)
        if not self._reads16:
            return QNormalize(
                name=name,
                output=output,
                data=images[0],
                factor="",
                offset="",
                centered=self.centered,
                epsilon=epsilon,
                shift=terms.shift,
                zeros=source.zero_point,
                requant=requant,
            )
        return QWideNormalize(
            name=name,
            output=output,
            data=images[0],
            factor="",
            offset="",
            centered=self.centered,
            epsilon=epsilon,
            shift=terms.shift,
            requant=requant if isinstance(self.quantize, Quantize) else None,
        )


def _source(name: str, end: End, around: Neighbours) -> AnyDequantize | None:
    """The node that makes floats of a normalization's data; of 16 bits where the result has 16."""
    wide = around.maker(name, Dequantize16)
    if wide is not None:
        return wide if wide.axis is None and around.tensors[wide.data].dtype == "int32" else None
    return int8_source(name, around) if isinstance(end, Quantize) else None
