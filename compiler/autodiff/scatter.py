"""Adjoints of elements that are written over others, or join them, at places known at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.autodiff.rules import Gradients, rule
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.scatter import AnyScatter
from vdla.compiler.tracing.arrays import Array
from vdla.compiler.tracing.elements import where
from vdla.compiler.tracing.nodes import add, array
from vdla.compiler.tracing.shapes import full_like


@dataclass(frozen=True)
class Places:
    """The places to which the updates of a node go."""

    node: AnyScatter
    indices: Array

    @property
    def _fields(self) -> dict[str, object]:
        own = self.node
        return {"axis": own.axis} if isinstance(own, ops.ScatterElements) else {}

    def read(self, data: Array) -> Array:
        """Elements of the data that stand there."""
        kind = ops.GatherElements if self._fields else ops.GatherND
        return add("read", kind, [data, self.indices], str(data.dtype), **self._fields)

    def write(self, data: Array, updates: Array, reduction: str) -> Array:
        """The data with updates there."""
        operands, fields = [data, self.indices, updates], self._fields
        kind = type(self.node)
        return add("written", kind, operands, str(data.dtype), reduction=reduction, **fields)


Rule = Callable[[Places, Sequence[Array], Array], tuple[Array, Array]]


def _replaced(places: Places, x: Sequence[Array], d: Array) -> tuple[Array, Array]:
    zeros = array(np.zeros(x[1].shape, d.dtype))
    return places.write(d, zeros, "none"), places.read(d)


def _added(places: Places, x: Sequence[Array], d: Array) -> tuple[Array, Array]:
    return d, places.read(d)


def _multiplied(places: Places, x: Sequence[Array], d: Array) -> tuple[Array, Array]:
    """The product of all others that meet in a place: that of those that aren't 0, by the one
    itself, where no other is 0."""
    data, updates = x
    zero = updates == 0
    zeros, safe = zero.astype(d.dtype), where(zero, full_like(updates, 1), updates)
    count = places.write(full_like(data, 0), zeros, "add")
    product = places.write(data, safe, "mul")
    others = places.read(d * product) / safe
    alone = places.read(count) == zeros
    factor = places.write(full_like(data, 1), updates, "mul")
    return d * factor, where(alone, others, full_like(others, 0))


def _extreme(places: Places, x: Sequence[Array], d: Array, y: Array) -> tuple[Array, Array]:
    """To those that are the result; of equal ones each has its share."""
    data, updates = x
    first, others = (data == y).astype(d.dtype), (updates == places.read(y)).astype(d.dtype)
    share = d / places.write(first, others, "add")
    return share * first, places.read(share) * others


SIMPLE: dict[str, Rule] = {"none": _replaced, "add": _added, "mul": _multiplied}


@rule(ops.ScatterElements, ops.ScatterND)
def _scatter(node: AnyScatter, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    data, indices, updates = x
    places = Places(node, indices)
    if node.reduction in SIMPLE:
        first, second = SIMPLE[node.reduction](places, (data, updates), d)
    else:
        first, second = _extreme(places, (data, updates), d, y)
    return [first, None, second]
