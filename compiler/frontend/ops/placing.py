"""Operators that take elements from other places: slices, pads, tiles, gathers, masks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.external import open_rows
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.scatter import COMBINED
from vdla.compiler.graph.ops.take import OUTSIDE
from vdla.support.numbers import ceil_div

MODES = ("constant", "edge", "reflect", "wrap")


@converts("Slice")
def _slice(view: OnnxNode) -> None:
    shape, make = view.shape(0), Maker(view)
    axes: Sequence[int]
    steps: Sequence[int]
    if view.draft.opset >= 10 and (size := _window(view)) is not None:
        _slide(view, size)
        return
    if view.draft.opset >= 10 and _is_prefix(view):
        _first_rows(view)
        return
    if view.draft.opset < 10:
        starts, ends = view.integers("starts", ()), view.integers("ends", ())
        axes, steps = view.integers("axes", range(len(starts))), [1] * len(starts)
    else:
        starts, ends = _integers(view, 1, "start"), _integers(view, 2, "end")
        axes = _integers(view, 3, "axes") if view.optional(3) else range(len(starts))
        steps = _integers(view, 4, "step") if view.optional(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise view.error("as many ends, axes and steps as starts", [len(ends), len(steps)])
    tables: list[Sequence[int]] = [range(n) for n in shape]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            raise view.error("a step that isn't 0", 0)
        place = view.axis(axis, len(shape))
        tables[place] = range(shape[place])[slice(start, _end(end, step), step)]
    make.result(make.take(view.operand(0), tables))


def _window(view: OnnxNode) -> int | None:
    """Number of elements between a start that only a run knows and an end that is a constant more;
    None where it isn't so."""
    draft, (start, end) = view.draft, (view.operand(1), view.operand(2))
    if draft.known(start) is not None or draft.tensors[start].elements != 1:
        return None
    makers = {node.output: node for node in draft.nodes}

    def source(name: str) -> str:
        """The scalar that a tensor of one element is."""
        node = makers.get(name)
        return source(node.data) if isinstance(node, ops.Reshape) else name

    behind = makers.get(source(end))
    if not isinstance(behind, ops.Add):
        return None
    for name, more in ((behind.a, draft.known(behind.b)), (behind.b, draft.known(behind.a))):
        if source(name) == source(start) and more is not None and more.size == 1:
            return int(more.reshape(()))
    return None


def _is_prefix(view: OnnxNode) -> bool:
    """Whether the first rows are taken, as many as only a run knows."""
    draft, none, one = view.draft, np.zeros(1), np.ones(1)
    axes = draft.known(view.operand(3)) if view.optional(3) else none
    steps = draft.known(view.operand(4)) if view.optional(4) else one
    wanted = ((draft.known(view.operand(1)), none), (axes, none), (steps, one))
    fits = all(a is not None and np.array_equal(a.reshape(-1), b) for a, b in wanted)
    return fits and draft.known(view.operand(2)) is None


def _first_rows(view: OnnxNode) -> None:
    """The first rows, up to an end that may count from the last one."""
    make, size = Maker(view), view.shape(0)[0]
    end = make.cast(make.reshape(view.operand(2), (1,)), "int64")
    none, every = make.like(0, end), make.like(size, end)
    end = make.where(make.binary("lt", end, none), make.binary("add", end, every), end)
    count = make.binary("min", make.binary("max", end, none), every)
    open_rows(view, str(view.proto.output[0]), view.operand(0), count)


def _slide(view: OnnxNode, size: int) -> None:
    """Elements from a start that only a run knows; a window that leaves the tensor is no whole one
    in ONNX, and ends with the last element here."""
    make, steps = Maker(view), view.constant(4, "step") if view.optional(4) else np.ones(1)
    axes = _integers(view, 3, "axes") if view.optional(3) else (0,)
    if steps.tolist() != [1] or len(axes) != 1 or size < 1:
        raise view.unsupported("a window along one axis, step by step", view.proto.input)
    axis, start = view.axis(axes[0], len(view.shape(0))), make.reshape(view.operand(1), (1,))
    places = make.binary("add", start, make.constant(np.arange(size), make.kind(start).dtype))
    last = make.constant(view.shape(0)[axis] - 1, make.kind(start).dtype)
    node = ops.Gather(
        **make.names(), data=view.operand(0), indices=make.binary("min", places, last), axis=axis
    )
    make.result(make.add(node, view.dtype(0)))


def _end(end: int, step: int) -> int | None:
    """Backwards, the least integers mean that the first element is in."""
    return None if step < 0 and end < -(1 << 30) else end


def _integers(view: OnnxNode, index: int, what: str) -> tuple[int, ...]:
    return tuple(int(v) for v in view.constant(index, what).reshape(-1))


@converts("Split")
def _split(view: OnnxNode) -> None:
    shape, make = view.shape(0), Maker(view)
    axis, count = view.axis(view.integer("axis", 0), len(shape)), len(view.proto.output)
    if view.optional(1) is not None:
        sizes = _integers(view, 1, "split")
    elif "split" in view.attributes:
        sizes = view.integers("split", ())
    else:
        each = ceil_div(shape[axis], count)
        sizes = tuple(min(each, shape[axis] - n * each) for n in range(count))
    if sum(sizes) != shape[axis] or len(sizes) != count or min(sizes) < 0:
        raise view.error(f"{count} parts of {shape[axis]} elements", list(sizes))
    start = 0
    for place, size in enumerate(sizes):
        if view.wanted(place):
            part = make.along(view.operand(0), axis, range(start, start + size))
            make.result(part, place)
        start += size


@converts("Pad")
def _pad(view: OnnxNode) -> None:
    """With a constant, elements from outside; in other modes from elsewhere within."""
    shape, make, mode = view.shape(0), Maker(view), view.text("mode", "constant")
    if mode not in MODES:
        raise view.unsupported(f"a mode of {', '.join(MODES)}", mode)
    tables = [
        [_source(mode, i, size) for i in range(-low, size + high)]
        for size, (low, high) in zip(shape, _edges(view, len(shape)), strict=True)
    ]
    modern = view.draft.opset >= 11
    name, fill = (view.optional(2) if modern else None), view.real("value", 0.0)
    known = None if name is None else view.draft.known(name)
    if known is not None and float(known.reshape(-1)[0]) == known.reshape(-1)[0]:
        name, fill = None, float(known.reshape(-1)[0])
    result = make.take(view.operand(0), tables, fill)
    if mode == "constant" and name is not None:  # known at run time, or no float
        inside = reduce(np.logical_and.outer, [np.array(t) != OUTSIDE for t in tables])
        result = make.where(make.constant(inside, "bool"), result, make.reshape(name, ()))
    make.result(result)


def _edges(view: OnnxNode, rank: int) -> list[tuple[int, int]]:
    """Counts of elements that come before and behind those along each axis."""
    modern = view.draft.opset >= 11
    pads = _integers(view, 1, "pads") if modern else view.integers("pads", ())
    given = _integers(view, 3, "axes") if modern and view.optional(3) else range(rank)
    if len(pads) != 2 * len(given):
        raise view.error(f"{2 * len(given)} pads", len(pads))
    edges = [(0, 0)] * rank
    for number, axis in enumerate(given):
        edges[view.axis(axis, rank)] = (pads[number], pads[number + len(given)])
    return edges


def _source(mode: str, i: int, size: int) -> int:
    """Index that the element at ``i`` comes from, which may lie outside."""
    if 0 <= i < size:
        return i
    if mode == "constant":
        return OUTSIDE
    if mode == "edge":
        return min(max(i, 0), size - 1)
    if mode == "wrap":
        return i % size
    period = max(2 * size - 2, 1)
    return min(i % period, period - i % period) if size > 1 else 0


@converts("Tile")
def _tile(view: OnnxNode) -> None:
    shape, make = view.shape(0), Maker(view)
    repeats = _integers(view, 1, "repeats")
    if len(repeats) != len(shape):
        raise view.error(f"{len(shape)} repeats", len(repeats))
    tables = [list(range(n)) * times for n, times in zip(shape, repeats, strict=True)]
    make.result(make.take(view.operand(0), tables))


@converts("Expand")
def _expand(view: OnnxNode) -> None:
    shape, make = view.shape(0), Maker(view)
    try:
        target = np.broadcast_shapes(shape, _integers(view, 1, "shape"))
    except ValueError:
        result = [list(shape), list(_integers(view, 1, "shape"))]
        raise view.error("a shape to broadcast to", result) from None
    full = (*(1,) * (len(target) - len(shape)), *shape)
    tables: list[Sequence[int]] = [
        [0] * wanted if size == 1 else range(wanted)
        for size, wanted in zip(full, target, strict=True)
    ]
    make.result(make.take(make.reshape(view.operand(0), full), tables))


@converts("Gather")
def _gather(view: OnnxNode) -> None:
    """At constant indices elements are taken, at others looked up."""
    shape, make, data = view.shape(0), Maker(view), view.operand(0)
    axis = view.axis(view.integer("axis", 0), len(shape))
    known = view.draft.known(view.operand(1))
    if known is None:
        node = ops.Gather(**make.names(), data=data, indices=view.operand(1), axis=axis)
        make.result(make.add(node, view.dtype(0)))
        return
    size = shape[axis]
    for index in known.reshape(-1):
        if not -size <= index < size:
            raise view.error(f"indices from {-size} to {size - 1} along axis {axis}", int(index))
    places = [int(i) % size for i in known.reshape(-1)]
    taken = make.along(data, axis, places)
    make.result(make.reshape(taken, (*shape[:axis], *known.shape, *shape[axis + 1 :])))


@converts("GatherElements")
def _gather_elements(view: OnnxNode) -> None:
    make, axis = Maker(view), view.axis(view.integer("axis", 0), len(view.shape(0)))
    data, indices = view.operands()
    node = ops.GatherElements(**make.names(), data=data, indices=indices, axis=axis)
    make.result(make.add(node, view.dtype(0)))


@converts("GatherND")
def _gather_nd(view: OnnxNode) -> None:
    make, (data, indices) = Maker(view), view.operands()
    batch = view.integer("batch_dims", 0)
    node = ops.GatherND(**make.names(), data=data, indices=indices, batch=batch)
    make.result(make.add(node, view.dtype(0)))


@converts("Scatter", "ScatterElements", "ScatterND")
def _scatter(view: OnnxNode) -> None:
    data, indices, updates = view.operands()
    if view.dtype(0) != view.dtype(2):
        raise view.error(f"updates of {view.dtype(0)}", view.dtype(2))
    reduction, make = view.text("reduction", "none"), Maker(view)
    if reduction not in COMBINED or ("bool" in view.dtype(0) and reduction != "none"):
        raise view.error(f"a reduction of {', '.join(COMBINED)}", reduction)
    node: ops.ScatterND | ops.ScatterElements
    if view.proto.op_type == "ScatterND":
        node = ops.ScatterND(
            **make.names(), data=data, indices=indices, updates=updates, reduction=reduction
        )
    else:
        axis = view.axis(view.integer("axis", 0), len(view.shape(0)))
        node = ops.ScatterElements(
            **make.names(), data=data, indices=indices, updates=updates, reduction=reduction,
            axis=axis,
        )  # fmt: skip
    make.result(make.add(node, view.dtype(0)))


@converts("Trilu")
def _trilu(view: OnnxNode) -> None:
    """A mask of what stays, which is known now."""
    shape, make = view.shape(0), Maker(view)
    diagonal = int(view.constant(1, "k").reshape(-1)[0]) if view.optional(1) else 0
    cut = np.triu if view.integer("upper", 1) else np.tril
    mask = make.constant(cut(np.ones(shape[-2:], bool), diagonal), "bool")
    make.result(make.where(mask, view.operand(0), make.like(0, view.operand(0))))


@converts("OneHot")
def _one_hot(view: OnnxNode) -> None:
    """``values`` are those elsewhere and at the index, which counts from the end below 0."""
    make, indices = Maker(view), view.operand(0)
    depth = int(view.constant(1, "depth").reshape(-1)[0])
    rank = len(view.shape(0)) + 1
    axis = view.axis(view.integer("axis", -1), rank)
    whole = make.cast(indices, "int64")
    positive = make.where(make.binary("lt", whole, 0), make.binary("add", whole, depth), whole)
    shape = view.shape(0)
    column = make.reshape(positive, (*shape[:axis], 1, *shape[axis:]))
    places = np.arange(depth).reshape([-1] + [1] * (rank - axis - 1))
    here = make.binary("eq", column, make.constant(places, "int64"))
    off, on = (make.along(view.operand(2), 0, [n]) for n in (0, 1))
    make.result(make.where(here, on, off))


@converts("EyeLike")
def _eye(view: OnnxNode) -> None:
    make, shape = Maker(view), view.shape(0)
    dtype = (
        view.draft.dtype(view.integer("dtype", 0)) if "dtype" in view.attributes else view.dtype(0)
    )
    make.result(make.constant(np.eye(shape[0], shape[1], view.integer("k", 0)), dtype))


@converts("ReverseSequence")
def _reverse_sequence(view: OnnxNode) -> None:
    """Each sequence of a batch, as long as it is, backwards."""
    shape, make = view.shape(0), Maker(view)
    batch, time = view.integer("batch_axis", 1), view.integer("time_axis", 0)
    column = [1] * len(shape)
    column[batch] = shape[batch]
    lengths = make.reshape(make.cast(view.operand(1), "int64"), tuple(column))
    steps = np.arange(shape[time]).reshape([-1 if n == time else 1 for n in range(len(shape))])
    step = make.constant(np.broadcast_to(steps, shape), "int64")
    turned = make.binary("sub", make.binary("sub", lengths, 1), step)
    places = make.where(make.binary("lt", step, lengths), turned, step)
    node = ops.GatherElements(**make.names(), data=view.operand(0), indices=places, axis=time)
    make.result(make.add(node, view.dtype(0)))
