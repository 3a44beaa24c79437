"""Results of many elements: sums, extremes, their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, cast

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.island import Island, Quantizable
from vdla.compiler.graph.ops.conv2d import QConv2d
from vdla.compiler.graph.ops.elementwise import wide, widened
from vdla.compiler.graph.ops.functions import like
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import CommReducer, IterVar, Tensor
from vdla.compiler.tir.ir import Expr

REDUCTIONS: dict[str, tuple[Callable[..., Array], CommReducer]] = {
    "sum": (np.sum, te.sum),
    "prod": (np.prod, te.prod),
    "max": (np.max, te.max),
    "min": (np.min, te.min),
    "mean": (np.mean, te.sum),
}
IMAGE, CHANNELS = 4, 1  # dimensions of an image, and the axis of its channels
FIRST, LAST = 2**31 - 1, -1  # places that any other one is better than


@dataclass(frozen=True, kw_only=True)
class Reduce(Quantizable):
    """``function`` of all elements along ``axes``, which stay with size 1 or go away.

    ``axes`` ascend. Of float16 it is computed in float32. On integers, sums and means of images'
    channels are convolutions by weights of 1.
    """

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    data: str
    function: str
    axes: tuple[int, ...]
    keepdims: bool = True

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        kept = [(1 if n in self.axes else size) for n, size in enumerate(shapes[0])]
        if self.keepdims:
            return tuple(kept)
        return tuple(size for n, size in enumerate(kept) if n not in self.axes)

    def absorbs(self, maker: Node) -> bool:
        return maker.ELEMENTWISE

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return prod(shapes[0])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        if self.function == "mean" and not args[0].size:  # as onnxruntime has it
            return np.zeros(self.result_shape([args[0].shape]), kind.dtype)
        function = REDUCTIONS[self.function][0]
        result = function(widened(args[0]), axis=self.axes, keepdims=self.keepdims)
        return np.asarray(result).astype(kind.dtype)

    def has_integers(self, shape: Shape) -> bool:
        """Whether it is a sum or a mean of an image's channels."""
        channels = len(shape) == IMAGE and self.axes == (CHANNELS,) and self.keepdims
        return channels and self.function in ("sum", "mean")

    def quantized(self, island: Island) -> Node:
        """A :class:`QConv2d` of one output channel."""
        data, quant = island.source(self.data)
        shape = island.editor.shape(data)
        count = shape[CHANNELS] if self.function == "mean" else 1
        ones = np.ones((1, shape[CHANNELS], 1, 1), np.int8)
        weight = island.editor.constant(f"{self.name}.ones", ones)
        scale = np.float32(quant.scale) / np.float32(count)
        return QConv2d(
            **island.names,
            data=data,
            weight=weight,
            bias=island.bias(None, np.array([scale]), weight, quant.zero_point),
            zeros=(quant.zero_point,),
            requant=island.requant(float(scale / np.float32(island.out.scale))),
        )

    @property
    def reduced_axes(self) -> tuple[int, ...]:
        """The axes that have one element afterwards, or go away."""
        return self.axes

    def reduced(self, element: Expr, steps: Sequence[IterVar]) -> Expr:
        """The reduction of an element over some steps."""
        return REDUCTIONS[self.function][1](element, axis=list(steps))

    def finished(self, total: Expr, recipe: Recipe) -> Expr:
        """The element of the result that a reduction's is."""
        if self.function != "mean":
            return total.astype(recipe.out_dtype)
        shape = recipe.shape(self.data)
        count = prod(shape[n] for n in self.axes)
        return (total / like(count, total)).astype(recipe.out_dtype)

    def express(self, recipe: Recipe) -> Tensor:
        data, shape = recipe.read(self.data), recipe.shape(self.data)
        steps = {n: te.reduce_axis((0, shape[n]), f"r{n}") for n in self.axes}
        kept = [n for n in range(len(shape)) if self.keepdims or n not in steps]

        def value(*i: Expr) -> Expr:
            index = {**dict(zip(kept, i, strict=True)), **steps}
            here = wide(data[tuple(index[n] for n in range(len(shape)))])
            return self.reduced(here, list(steps.values())) if steps else here

        total = te.compute(recipe.out_shape, value, self.function)
        if self.function != "mean" and total.dtype == recipe.out_dtype:
            return total
        return te.compute(recipe.out_shape, lambda *i: self.finished(total[i], recipe), "result")


@dataclass(frozen=True, kw_only=True)
class ArgReduce(Node):
    """Index along ``axis`` of the largest element, or of the least; of equal ones the first or
    last.

    The axis stays with size 1.
    """

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset({"int64"})

    data: str
    axis: int
    largest: bool = True
    last: bool = False
    keepdims: ClassVar[bool] = True

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return (*shapes[0][: self.axis], 1, *shapes[0][self.axis + 1 :])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        find = np.argmax if self.largest else np.argmin
        size = args[0].shape[self.axis]
        data = np.flip(args[0], self.axis) if self.last else args[0]
        result = find(data, axis=self.axis, keepdims=True)
        return np.asarray(size - 1 - result if self.last else result)

    @property
    def reduced_axes(self) -> tuple[int, ...]:
        """The axis that has one element afterwards."""
        return (self.axis,)

    def reduced(self, element: Expr, steps: Sequence[IterVar]) -> tuple[Expr, ...]:
        """The place of the best element over a step, and that element."""
        (step,) = steps
        return te.comm_reducer(self._better, self._worst, "best")((step, element), axis=step)

    def finished(self, place: Expr, recipe: Recipe) -> Expr:
        """The element of the result; where all are NaN, none was better."""
        size = recipe.shape(self.data)[self.axis]
        return te.minimum(te.maximum(place, 0), size - 1).astype("int64")

    def express(self, recipe: Recipe) -> Tensor:
        data, axis = recipe.read(self.data), self.axis
        step = te.reduce_axis((0, data.shape[axis]), "r")

        def value(*i: Expr) -> tuple[Expr, ...]:
            return self.reduced(wide(data[(*i[:axis], step, *i[axis + 1 :])]), [step])

        pair = te.compute(recipe.out_shape, value, "best")  # of two values, two tensors
        place, _ = cast("tuple[Tensor, Tensor]", pair)
        return te.compute(recipe.out_shape, lambda *i: self.finished(place[i], recipe), "place")

    def _better(self, x: tuple[Expr, Expr], y: tuple[Expr, Expr]) -> tuple[Expr, Expr]:
        ahead = x[1] > y[1] if self.largest else x[1] < y[1]
        nearer = x[0] > y[0] if self.last else x[0] < y[0]
        choose = te.any(ahead, te.all(te.equal(x[1], y[1]), nearer))
        return te.select(choose, x[0], y[0]), te.select(choose, x[1], y[1])

    def _worst(self, place: str, value: str) -> tuple[Expr, Expr]:
        least = te.min_value(value) if self.largest else te.max_value(value)
        return te.const(LAST if self.last else FIRST, place), least
