"""Elements written over others, at places that are known only at run time; see ``gather``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.ops.gather import bounded, bounded_array
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Stmt

Place = Callable[[Sequence[Expr], Tensor, Shape], tuple[Expr, ...]]
COMBINED: dict[str, Callable[[Expr, Expr], Expr]] = {
    "none": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": te.maximum,
    "min": te.minimum,
}
ARRAYS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@dataclass(frozen=True, kw_only=True)
class AnyScatter(Node, operator=False):
    """``data``, in which each of the ``updates`` in turn replaces an element or joins it.

    ``reduction`` is one of ``COMBINED``.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "indices", "updates")
    READS: ClassVar[frozenset[str]] = frozenset(DTYPES)
    WRITES: ClassVar[frozenset[str]] = frozenset(DTYPES)

    data: str
    indices: str
    updates: str
    reduction: str = "none"

    def place(self, index: Sequence[Expr], indices: Tensor, shape: Shape) -> tuple[Expr, ...]:
        """Indices to which the update at ``index`` goes in a tensor of ``shape``."""
        raise NotImplementedError

    def places(self, indices: Array, updates: Array, shape: Shape) -> tuple[Array, ...]:
        """Indices to which all updates go in a tensor of ``shape``: one array per dimension."""
        raise NotImplementedError

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, indices, updates = args
        result, where = data.copy(), self.places(indices, updates, data.shape)
        if self.reduction == "none":
            result[where] = updates
        else:
            ARRAYS[self.reduction].at(result, where, updates)
        return result

    def express(self, recipe: Recipe) -> Tensor:
        tensors = [recipe.read(name) for name in (self.data, self.indices, self.updates)]
        combine = COMBINED[self.reduction]

        def write(ins: Sequence[Tensor], outs: Sequence[Tensor]) -> Stmt:
            data, indices, updates = ins
            ib = te.ir_builder.create()
            result = ib.buffer_ptr(outs[0])
            with ExitStack() as loops:
                i = _loops(ib, loops, data.shape, "i")
                result[i] = data[i]
            with ExitStack() as loops:
                i = _loops(ib, loops, updates.shape, "u")
                where = self.place(i, indices, data.shape)
                result[where] = combine(result[where], updates[i])
            return ib.get()

        return te.extern(recipe.out_shape, tensors, write, "scattered", recipe.out_dtype)


def _loops(
    ib: te.ir_builder.IRBuilder, stack: ExitStack, shape: Shape, name: str
) -> tuple[Expr, ...]:
    """Loops over a whole tensor, which close with the stack."""
    return tuple(
        stack.enter_context(ib.for_range(0, size, f"{name}{axis}"))
        for axis, size in enumerate(shape)
    )


@dataclass(frozen=True, kw_only=True)
class ScatterElements(AnyScatter):
    """``result[indices[i, j, …], j, …] = updates[i, j, …]``, for ``axis`` 0."""

    axis: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, indices, updates = shapes
        fits = len(data) == len(indices) and all(
            b <= a for n, (a, b) in enumerate(zip(data, indices, strict=True)) if n != self.axis
        )
        if not fits or indices != updates:
            actual = f"{list(indices)} and {list(updates)}"
            raise self.error(f"indices and updates of one shape within {list(data)}", actual)
        return data

    def place(self, index: Sequence[Expr], indices: Tensor, shape: Shape) -> tuple[Expr, ...]:
        axis = self.axis
        here = bounded(indices[tuple(index)], shape[axis])
        return (*index[:axis], here, *index[axis + 1 :])

    def places(self, indices: Array, updates: Array, shape: Shape) -> tuple[Array, ...]:
        result: list[Array] = [*np.indices(indices.shape)]
        result[self.axis] = bounded_array(indices, shape[self.axis])
        return tuple(result)


@dataclass(frozen=True, kw_only=True)
class ScatterND(AnyScatter):
    """Slices of the result at whole tuples of indices, their last axis."""

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, indices, updates = shapes
        depth = indices[-1] if indices else 0
        if not 1 <= depth <= len(data) or updates != (*indices[:-1], *data[depth:]):
            actual = f"{list(indices)} and {list(updates)}"
            raise self.error(f"indices into {list(data)} and updates there", actual)
        return data

    def place(self, index: Sequence[Expr], indices: Tensor, shape: Shape) -> tuple[Expr, ...]:
        rank = len(indices.shape) - 1
        first = [bounded(indices[(*index[:rank], n)], shape[n]) for n in range(indices.shape[-1])]
        return (*first, *index[rank:])

    def places(self, indices: Array, updates: Array, shape: Shape) -> tuple[Array, ...]:
        return tuple(bounded_array(indices[..., n], shape[n]) for n in range(indices.shape[-1]))
