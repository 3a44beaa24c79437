"""Results that follow from one element after the other: running totals, the first of an order.

They are statements rather than expressions (``te.extern``), because what one element does depends
on those before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from operator import add, mul
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.ops.elementwise import wide, widened
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.te.ir_builder import IRBuilder
from vdla.compiler.tir.ir import Expr, Stmt


@contextmanager
def nest(ib: IRBuilder, shape: Shape, name: str) -> Iterator[tuple[Expr, ...]]:
    """Loops over all places of a shape around what is made inside the ``with``; gives the place."""
    with ExitStack() as loops:
        ranges = (ib.for_range(0, size, f"{name}{n}") for n, size in enumerate(shape))
        yield tuple([loops.enter_context(each) for each in ranges])


@dataclass(frozen=True, kw_only=True)
class Cumulate(Node):
    """The sum or product of all elements up to each one along ``axis``.

    ``exclusive``: without the one itself; ``reverse``: from the end on.
    """

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES) - {"bool"}
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES) - {"bool"}

    data: str
    function: str
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data = np.moveaxis(widened(args[0]), self.axis, 0)
        data = data[::-1] if self.reverse else data
        if self.exclusive:
            first = np.full_like(data[:1], self.function == "prod")
            data = np.concatenate([first, data[:-1]])
        run = np.cumsum if self.function == "sum" else np.cumprod
        result = run(data, axis=0, dtype=data.dtype)
        result = result[::-1] if self.reverse else result
        return np.ascontiguousarray(np.moveaxis(result, 0, self.axis)).astype(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        return te.extern(recipe.out_shape, [data], self._run, "total", recipe.out_dtype)

    def _run(self, ins: Sequence[Tensor], outs: Sequence[Tensor]) -> Stmt:
        """Loops over the axis with a running total for each place behind it."""
        (data,), ib = ins, te.ir_builder.create()
        size, inner = data.shape[self.axis], data.shape[self.axis + 1 :]
        out = ib.buffer_ptr(outs[0])
        kind = "float32" if data.dtype == "float16" else data.dtype
        total = ib.allocate(kind, inner or (1,), "running")
        combine = mul if self.function == "prod" else add
        with nest(ib, data.shape[: self.axis], "i") as before:
            with nest(ib, inner, "j") as j:
                total[j or (0,)] = int(self.function == "prod")
            with ib.for_range(0, size, "r") as step, nest(ib, inner, "k") as k:
                index = (*before, size - 1 - step if self.reverse else step, *k)
                here = k or (0,)
                if self.exclusive:
                    out[index] = total[here].astype(data.dtype)
                total[here] = combine(total[here], wide(data[index]))
                if not self.exclusive:
                    out[index] = total[here].astype(data.dtype)
        return ib.get()


@dataclass(frozen=True, kw_only=True)
class TopK(Node):
    """The ``count`` largest elements along ``axis``, or least, in order; of equal ones the first.

    ``places``: where they are instead of what they are.
    """

    READS: ClassVar[frozenset[str]] = frozenset(DTYPES) - {"bool"}
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES) - {"bool"}

    data: str
    axis: int
    count: int
    largest: bool = True
    places: bool = False

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        shape = shapes[0]
        if not 1 <= self.count <= shape[self.axis]:
            raise self.error(f"1 to {shape[self.axis]} elements of axis {self.axis}", self.count)
        return (*shape[: self.axis], self.count, *shape[self.axis + 1 :])

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, size = args[0], args[0].shape[self.axis]
        if self.largest:  # from the end on, as stable sorting ascends
            order = size - 1 - np.argsort(np.flip(data, self.axis), self.axis, kind="stable")
            order = np.flip(order, self.axis)
        else:
            order = np.argsort(data, self.axis, kind="stable")
        first = np.take(order, range(self.count), axis=self.axis)
        result = first if self.places else np.take_along_axis(data, first, self.axis)
        return np.ascontiguousarray(result).astype(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        data = recipe.read(self.data)
        return te.extern(recipe.out_shape, [data], self._run, "top", recipe.out_dtype)

    def _run(self, ins: Sequence[Tensor], outs: Sequence[Tensor]) -> Stmt:
        """Keeps the best so far in order; an element that beats the last of them is inserted."""
        (data,), ib, axis = ins, te.ir_builder.create(), self.axis
        out = ib.buffer_ptr(outs[0])
        best = ib.allocate(data.dtype, self.count, "best")
        places = ib.allocate("int32", self.count, "places")
        hole = ib.allocate("int32", 1, "hole")
        last = self.count - 1
        with nest(ib, data.shape[:axis], "i") as i, nest(ib, data.shape[axis + 1 :], "j") as j:
            with ib.for_range(0, data.shape[axis], "r") as step:
                here = data[(*i, step, *j)]
                with ib.if_scope(te.any(step <= last, self._ahead(here, best[last]))):
                    hole[0] = te.minimum(step, last)
                    with nest(ib, (last,) if last else (), "s") as moved:
                        for back in moved:  # one loop; none where a single element is kept
                            place = last - back
                            beaten = self._ahead(here, best[place - 1])
                            with ib.if_scope(te.all(te.equal(hole[0], place), beaten)):
                                best[place] = best[place - 1]
                                places[place] = places[place - 1]
                                hole[0] = place - 1
                    best[hole[0]] = here
                    places[hole[0]] = step
            with ib.for_range(0, self.count, "n") as rank:
                result = places[rank].astype("int64") if self.places else best[rank]
                out[(*i, rank, *j)] = result
        return ib.get()

    def _ahead(self, x: Expr, y: Expr) -> Expr:
        """Whether one element comes before another; of equal ones, who is first stays first."""
        return x > y if self.largest else x < y
