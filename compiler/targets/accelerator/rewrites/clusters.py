"""Float operators between Dequantize and Quantize that are one operator on images of integers.

A **cluster** is what a Quantize has behind it, down to its sources. It knows which axes of its
result are channels and pixels, which those of its sources then are, and its node. Each kind is one
class of this file with a ``find``; ``cluster_of`` tries them in turn.

    product        Q(MatMul(DQ, DQ))
    softmax        Q(Softmax(DQ))
    mean           Q(mean(DQ))
    normalization  Q((x - mean) / √(mean((x - mean)²) + epsilon) * gamma + beta), x = DQ; the RMS
                   form has no mean, and factor and offset may be missing
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar, Self

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.boundaries import int8_source, meets
from vdla.compiler.graph.ir import Array, GraphError, Node, Requant, Shape
from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.numbers import pool_scale
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.normalize import QNormalize, Terms
from vdla.compiler.graph.sums import check_products
from vdla.compiler.targets.accelerator.rewrites.form import Form, Order
from vdla.compiler.targets.accelerator.rewrites.matcher import deviation_of


@dataclass(frozen=True)
class Cluster(ABC):
    """The float operators that a node quantizes, and what they read.

    ``DIFFERS`` says how results may differ from the float operators', rounded; nothing where they
    don't.
    """

    DIFFERS: ClassVar[str] = ""

    quantize: ops.Quantize
    sources: tuple[ops.Dequantize, ...]

    @classmethod
    @abstractmethod
    def find(cls, node: ops.Quantize, around: Neighbours) -> Self | None:
        """The cluster of this kind that a node has behind it; None where there is none."""

    @abstractmethod
    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """The axes of the result in each place of its image, given how the sources lie in theirs;
        None where they had better stay as they are."""

    @abstractmethod
    def orders(self, order: Order) -> tuple[Order, ...]:
        """The axes of each source in its image, for those of the result."""

    @abstractmethod
    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The operator on the sources' images; ``constants`` are its other operands."""

    def constants(self) -> dict[str, Array]:
        """Arrays that its node reads besides, by the names of its fields."""
        return {}


@dataclass(frozen=True)
class Product(Cluster):
    """A product of two stacks of matrices, [..., M, K] and [..., K, O]."""

    rank: int

    @classmethod
    def find(cls, node: ops.Quantize, around: Neighbours) -> Self | None:
        """The product that a node quantizes, if both factors are int8 and the stacks alike."""
        core = around.maker(node.data, ops.MatMul)
        if core is None:
            return None
        a, b = int8_source(core.a, around), int8_source(core.b, around)
        stacks = {around.shape(name)[:-2] for name in (core.a, core.b)}
        alone = len(around.readers(core.output)) == 1 and core.output not in around.outputs
        if a is None or b is None or len(stacks) > 1 or not alone:
            return None
        try:
            check_products(around.shape(core.a)[-1], a.zero_point[0], b.zero_point[0])
        except GraphError as error:
            around.reasons[core.name] = str(error)
            return None
        return cls(node, (a, b), len(around.shape(node.output)))

    def order(self, known: Sequence[Form | None], around: Neighbours) -> Order | None:
        """Columns as channels, or rows where a softmax over columns follows: it works on pixels."""
        if not any(known):
            return None
        *stack, rows, columns = range(self.rank)
        softmax = meets(self.quantize.output, ops.Softmax, PASSED, around)
        channels, pixels = (rows, columns) if softmax else (columns, rows)
        return Order(tuple(stack), (channels,), (pixels,))

    def orders(self, order: Order) -> tuple[Order, ...]:
        """Orders of the factors: the axis that is summed over lies in both factors' channels."""
        stack, (rows, columns) = order.batch, (self.rank - 2, self.rank - 1)
        return Order(stack, (columns,), (rows,)), Order(stack, (rows,), (columns,))

    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The product of two images."""
        (a, b), (of_a, of_b), result = self.sources, images, self.quantize
        if order.channels == (self.rank - 2,):
            a, b, of_a, of_b = b, a, of_b, of_a
        scale = np.float32(a.scale[0]) * np.float32(b.scale[0]) / np.float32(result.scale[0])
        return QMatMul(
            name=name,
            output=output,
            a=of_a,
            b=of_b,
            zeros=(a.zero_point[0], b.zero_point[0]),
            requant=Requant((float(scale),), result.zero_point[0]),
        )


@dataclass(frozen=True)
class SoftmaxCluster(Cluster):
    """A softmax along an axis."""

    DIFFERS = "softmax in integers may differ by 1 LSB"

    axis: int

    @classmethod
    def find(cls, node: ops.Quantize, around: Neighbours) -> Self | None:
        """The softmax of int8 that a node quantizes."""
        core = around.maker(node.data, ops.Softmax)
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


@dataclass(frozen=True)
class Mean(Cluster):
    """The mean along some axes, which stay with size 1 or go away."""

    axes: tuple[int, ...]
    kept: bool
    shape: Shape

    @classmethod
    def find(cls, node: ops.Quantize, around: Neighbours) -> Self | None:
        """The mean of int8 that a node quantizes."""
        core = around.maker(node.data, ops.Reduce)
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
        return ops.QAvgPool(
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


@dataclass(frozen=True)
class Normalization(Cluster):
    """A normalization along ``axes``, with a factor and an offset for each of their elements."""

    DIFFERS = "a normalization in integers may differ by 1 LSB"

    axes: tuple[int, ...]
    rank: int
    centered: bool
    epsilon: float
    gamma: Array
    beta: Array

    @classmethod
    def find(cls, node: ops.Quantize, around: Neighbours) -> Self | None:
        """The normalization of int8 that a node quantizes."""
        whole = deviation_of(node.data, around)
        source = int8_source(whole.data, around) if whole else None
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

    @cached_property
    def _terms(self) -> Terms:
        step = self.quantize.scale[0]
        return Terms.of(self.gamma / step, self.beta / step)

    def node(self, name: str, images: Sequence[str], output: str, order: Order) -> Node:
        """The normalization over channels."""
        source = self.sources[0]
        return QNormalize(
            name=name,
            output=output,
            data=images[0],
            factor="",
            offset="",
            centered=self.centered,
            epsilon=self.epsilon / source.scale[0] ** 2,
            shift=self._terms.shift,
            zeros=source.zero_point,
            requant=Requant((self._terms.scale,), self.quantize.zero_point[0]),
        )


def cluster_of(node: ops.Quantize, around: Neighbours) -> Cluster | None:
    """Cluster that a node quantizes; None where it quantizes none, or the result isn't int8 with
    one scale.
    """
    if node.axis is not None or around.tensors[node.output].dtype != "int8":
        return None
    kinds: tuple[type[Cluster], ...] = (Product, SoftmaxCluster, Mean, Normalization)
    return next((c for kind in kinds if (c := kind.find(node, around)) is not None), None)


PASSED = (ops.Dequantize, ops.Quantize, ops.QAdd, ops.QClip, ops.QTable)
