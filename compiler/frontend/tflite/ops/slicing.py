"""Parts of tensors: slices, splits, and what stands around them: pads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.frontend.tflite.layout import Layout
from vdla.compiler.frontend.tflite.operator import FILE, View, converts
from vdla.compiler.frontend.tflite.schema import word

MOST = int(np.iinfo(np.int64).max)
LEAST = int(np.iinfo(np.int64).min)


def cut(view: View, layout: Layout, ranges: Sequence[tuple[int, int, int]]) -> str:
    """Parts of the first operand along each axis.

    Args:
        view: the operator.
        layout: the order in which the axes are held.
        ranges: for each of the file's axes its first element, the one behind its last, and a step.
    """
    shape, data = view.shape(0), view.real(0, layout)
    whole = [(0, size, 1) for size in shape]
    axes = [axis for axis, each in enumerate(ranges) if tuple(each) != whole[axis]]
    if not axes:
        return data
    starts, ends, steps = (view.integers_of([ranges[a][i] for a in axes]) for i in range(3))
    held = view.integers_of([layout.axis(axis, len(shape)) for axis in axes])
    return view.emit("Slice", [data, starts, ends, held, steps])


@converts("SLICE")
def _slice(view: View) -> None:
    """A first element and a size for each axis; -1 is all that is left."""
    shape = view.shape(0)
    begins, sizes = view.numbers(1, "first elements"), view.numbers(2, "sizes")
    if len(begins) != len(shape) or len(sizes) != len(shape):
        raise view.error(f"{len(shape)} first elements and sizes", f"{begins} and {sizes}")
    ranges = []
    for begin, size, of in zip(begins, sizes, shape, strict=True):
        end = of if size == -1 else begin + size
        if not 0 <= begin <= end <= of:
            raise view.error(f"a part of {list(shape)}", f"{size} from {begin}")
        ranges.append((begin, end, 1))
    layout = view.layout(0)
    view.put(cut(view, layout, ranges), layout)


# Strided slices ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """One axis of the data, or a new one, in a strided slice.

    ``bounds`` are its first element, the one behind its last, and a step; None makes a new axis.
    """

    bounds: tuple[int, int, int] | None
    shrinks: bool = False


def items_of(view: View) -> Iterator[Item]:
    """The items of a strided slice, one for each axis of the data and for each new one.

    Raises:
        ModelError: there are more than axes, or a step is 0.
    """
    begin, end, step = (view.numbers(i, "bounds") for i in (1, 2, 3))
    if not len(begin) == len(end) == len(step):
        raise view.error("as many ends and steps as beginnings", f"{begin}, {end}, {step}")
    masks = {
        name: view.integer(f"{name}Mask")
        for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")
    }
    shape, axis = list(view.shape(0)), 0
    new = sum(1 for i in range(len(begin)) if masks["NewAxis"] >> i & 1)
    skipped = len(shape) - (len(begin) - new - bool(masks["Ellipsis"]))
    for i in range(len(begin)):
        on = {name: bool(mask >> i & 1) for name, mask in masks.items()}
        if on["Ellipsis"]:
            for size in shape[axis : axis + max(skipped, 0)]:
                yield Item((0, size, 1))
            axis += max(skipped, 0)
            continue
        if on["NewAxis"]:
            yield Item(None)
            continue
        if axis >= len(shape) or step[i] == 0:
            raise view.error(f"at most {len(shape)} parts with steps other than 0", f"{step}")
        yield _item(begin[i], end[i], step[i], shape[axis], on)
        axis += 1
    for size in shape[axis:]:
        yield Item((0, size, 1))


def _item(begin: int, end: int, step: int, size: int, on: dict[str, bool]) -> Item:
    if on["ShrinkAxis"]:
        first = begin + size if begin < 0 else begin
        return Item((first, first + 1, 1), shrinks=True)
    first = (0 if step > 0 else MOST) if on["Begin"] else begin
    last = (MOST if step > 0 else LEAST) if on["End"] else end
    if step > 0:
        start, stop, _ = slice(first, last, step).indices(size)
        return Item((start, stop, step))
    return Item((first, last, step))


@converts("STRIDED_SLICE")
def _strided(view: View) -> None:
    items = [*items_of(view)]
    ranges = [item.bounds for item in items if item.bounds is not None]
    plain = len(ranges) == len(items) and not any(item.shrinks for item in items)
    layout = view.layout(0) if plain else FILE
    result = cut(view, layout, ranges)
    if not plain:
        shape = [_size(i) for i in items if not i.shrinks]
        result = view.emit("Reshape", [result, view.integers_of(shape)])
    view.put(result, layout)


def _size(item: Item) -> int:
    """The size of an axis of a result."""
    if item.bounds is None:
        return 1
    begin, end, step = item.bounds
    if step > 0:
        return max(-((begin - end) // step), 0)
    return -1


# Splits -------------------------------------------------------------------------------------------


@converts("SPLIT")
def _split(view: View) -> None:
    """Equal parts; the operands are an axis and the data."""
    parts = len(view.operator.outputs)
    (axis,) = view.numbers(0, "an axis")
    axis = view.axis(axis, view.rank(1))
    size = view.shape(1)[axis]
    if size % parts:
        raise view.error(f"{size} elements in equal parts", f"{parts} parts")
    _divide(view, 1, axis, [size // parts] * parts)


@converts("SPLIT_V")
def _split_sizes(view: View) -> None:
    """Parts of given sizes, of which one may be -1: what the others leave."""
    sizes = view.numbers(1, "sizes of parts")
    (axis,) = view.numbers(2, "an axis")
    axis = view.axis(axis, view.rank(0))
    whole = view.shape(0)[axis]
    sizes = [whole - sum(sizes) - 1 if size == -1 else size for size in sizes]
    if sum(sizes) != whole or min(sizes) < 0:
        raise view.error(f"parts of {whole} elements", sizes)
    _divide(view, 0, axis, sizes)


def _divide(view: View, data: int, axis: int, sizes: Sequence[int]) -> None:
    layout = view.layout(data)
    held = layout.axis(axis, view.rank(data))
    names = [view.draft.names.fresh(f"{view.name}.part") for _ in sizes]
    operands = [view.real(data, layout), view.integers_of(sizes)]
    view.draft.emit_all("Split", operands, names, axis=held)
    for index, name in enumerate(names):
        view.put(name, layout, index)


@converts("UNPACK")
def _unpack(view: View) -> None:
    """Each element along an axis, without the axis."""
    axis = view.axis(view.integer("Axis"), view.rank(0))
    count = len(view.operator.outputs)
    if count != view.shape(0)[axis]:
        raise view.error(f"{view.shape(0)[axis]} results", count)
    names = [view.draft.names.fresh(f"{view.name}.part") for _ in range(count)]
    operands = [view.real(0), view.integers_of([1] * count)]
    view.draft.emit_all("Split", operands, names, axis=axis)
    for index, name in enumerate(names):
        view.put(view.emit("Squeeze", [name, view.integers_of([axis])]), FILE, index)


# Pads ---------------------------------------------------------------------------------------------


@converts("PAD", "PADV2")
def _pad(view: View) -> None:
    """Zeros, or a number, in front of and behind each axis."""
    layout = view.layout(0)
    fill = [view.emit("Reshape", [view.real(2), view.integers_of([])])] if view.has(2) else []
    pads = _pads(view)
    operands = [view.real(0, layout), view.integers_of(_ordered(pads, layout)), *fill]
    view.put(view.emit("Pad", operands), layout)


def _pads(view: View) -> list[tuple[int, int]]:
    """(before, behind) of each axis."""
    values = view.constant(1, "pads").reshape(-1)
    pads = [(int(a), int(b)) for a, b in values.reshape(-1, 2)]
    if len(pads) != view.rank(0) or min(map(min, pads), default=0) < 0:
        raise view.error(f"two pads ≥ 0 for each of {view.rank(0)} axes", pads)
    return pads


def _ordered(pads: Sequence[tuple[int, int]], layout: Layout) -> list[int]:
    """Pads as ONNX has them, all those before first."""
    before, behind = zip(*pads, strict=True) if pads else ((), ())
    return [*layout.ordered(before), *layout.ordered(behind)]


@converts("MIRROR_PAD")
def _mirror(view: View) -> None:
    """The data mirrored at their ends, which a mode repeats or doesn't; each axis by itself."""
    layout, mode = view.layout(0), word("MirrorPadMode", view.integer("Mode"))
    pads, shape = _pads(view), view.shape(0)
    if mode == "REFLECT":
        operands = [view.real(0, layout), view.integers_of(_ordered(pads, layout))]
        view.put(view.emit("Pad", operands, mode="reflect"), layout)
        return
    result = view.real(0, layout)
    for axis, pad in enumerate(pads):
        if max(pad) > shape[axis]:
            raise view.error(f"at most {shape[axis]} mirrored elements", list(pad))
        if any(pad):
            places = np.pad(np.arange(shape[axis]), pad, mode="symmetric")
            index = view.integers_of([int(place) for place in places])
            held = layout.axis(axis, len(shape))
            result = view.emit("Gather", [result, index], axis=held)
    view.put(result, layout)
