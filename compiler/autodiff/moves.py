"""Adjoints of operators that move elements: what was read from a place goes back to it.

The adjoint of a selection along an axis is a sum: an element that was read m times gets m
gradients. It is a selection of the gradients, m for each element, zeros where there are fewer, and
their sum: the transpose of a matrix of units, of which nothing but the places is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.compiler.autodiff.rules import Gradients, rule
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.compiler.tracing.arrays import Array
from vdla.compiler.tracing.nodes import add, array
from vdla.compiler.tracing.shapes import SUM, concatenate, full_like, split, transpose

Places = Sequence[int]


def selected(x: Array, tables: Sequence[Places]) -> Array:
    """Elements at places along each axis, all known now; zeros for those outside."""
    if all([*table] == [*range(n)] for table, n in zip(tables, x.shape, strict=True)):
        return x
    places = tuple(int(place) for table in tables for place in table)
    fields = {"shape": tuple(map(len, tables)), "places": places}
    return add("selected", ops.Take, [x], str(x.dtype), **fields)


def returned(d: Array, tables: Sequence[Places], shape: Sequence[int]) -> Array:
    """The gradient of data of a shape of which elements at places were read."""
    for axis, (table, size) in enumerate(zip(tables, shape, strict=True)):
        d = _along(d, axis, table, size)
    return d


def _along(d: Array, axis: int, table: Places, size: int) -> Array:
    """The gradient of data of which elements along one axis were read."""
    readers: list[list[int]] = [[] for _ in range(size)]
    for number, place in enumerate(table):
        if place != OUTSIDE:
            readers[place].append(number)
    most = max(map(len, readers), default=0)
    if not most:
        return array(np.zeros((*d.shape[:axis], size, *d.shape[axis + 1 :]), d.dtype))
    flat = [n for each in readers for n in (*each, *[OUTSIDE] * (most - len(each)))]
    tables: list[Places] = [range(n) for n in d.shape]
    tables[axis] = flat
    whole = selected(d, tables)
    if most == 1:
        return whole
    parts = whole.reshape(*d.shape[:axis], size, most, *d.shape[axis + 1 :])
    return SUM(parts, axis=axis + 1)


@rule(ops.Take)
def _take(node: ops.Take, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    return [returned(d, node.tables(), x[0].shape)]


@rule(ops.Reshape)
def _reshape(node: ops.Reshape, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    return [d.reshape(*x[0].shape)]


@rule(ops.Transpose)
def _transpose(node: ops.Transpose, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    return [transpose(d, np.argsort(node.perm).tolist())]


@rule(ops.Concat)
def _concat(node: ops.Concat, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    ends = np.cumsum([each.shape[node.axis] for each in x])[:-1].tolist()
    return split(d, ends, axis=node.axis) if ends else [d]


@rule(ops.Interleave)
def _interleave(node: ops.Interleave, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """Parts of an image, of which one has each row and column of a grid."""
    return [
        d[:, :, n // node.columns :: node.rows, n % node.columns :: node.columns]
        for n in range(len(x))
    ]


# Places that are known only at run time -----------------------------------------------------------


@rule(ops.Gather)
def _gather(node: ops.Gather, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """Slices are added at their indices, which come first for that."""
    data, indices = x
    axis, count = node.axis, indices.size
    before, behind = data.shape[:axis], data.shape[axis + 1 :]
    rows = d.reshape(*before, count, *behind)
    rows = transpose(rows, [axis, *range(axis), *range(axis + 1, rows.ndim)])
    places = indices.reshape(count, 1).astype("int64")
    start = array(np.zeros((data.shape[axis], *before, *behind), d.dtype))
    sums = add("added", ops.ScatterND, [start, places, rows], str(d.dtype), reduction="add")
    back = [*range(1, axis + 1), 0, *range(axis + 1, sums.ndim)]
    return [transpose(sums, back), None]


@rule(ops.GatherElements)
def _gather_elements(node: ops.GatherElements, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    operands = [full_like(x[0], 0), x[1], d]
    fields = {"reduction": "add", "axis": node.axis}
    return [add("added", ops.ScatterElements, operands, str(d.dtype), **fields), None]


@rule(ops.GatherND)
def _gather_nd(node: ops.GatherND, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    data, indices = x
    if node.batch:  # the places along the axes in common are indices like the others
        shape = indices.shape[:-1]
        common = np.moveaxis(np.indices(shape)[: node.batch], 0, -1)
        indices = concatenate([array(common.astype(np.int64)), indices.astype("int64")], axis=-1)
    operands = [full_like(data, 0), indices, d]
    return [add("added", ops.ScatterND, operands, str(d.dtype), reduction="add"), None]


@rule(ops.TopK)
def _top(node: ops.TopK, x: Sequence[Array], y: Array, d: Array) -> Gradients:
    """Back to the places from which elements were taken."""
    if node.places:
        return [None]
    fields = {"axis": node.axis, "count": node.count, "largest": node.largest, "places": True}
    places = add("places", ops.TopK, list(x), "int64", **fields)
    operands = [full_like(x[0], 0), places, d]
    scattered = {"reduction": "add", "axis": node.axis}
    return [add("added", ops.ScatterElements, operands, str(d.dtype), **scattered)]
