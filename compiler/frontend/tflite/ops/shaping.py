"""Operators that keep every element: other shapes, other orders of axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from vdla.compiler.frontend.tflite.contents import COMPLEX
from vdla.compiler.frontend.tflite.drafting import CODES, has_one_order
from vdla.compiler.frontend.tflite.operator import FIRST, FLAT, View, converts


def reshape(view: View, shape: Sequence[int]) -> None:
    """Makes the result of the first operand's elements in another shape."""
    if view.tensor(0).dtype == COMPLEX:
        sizes = view.integers_of((*shape, 2))
        view.draft.put_stored(view.result(), view.emit("Reshape", [view.stored(0), sizes]))
        return
    view.put(view.emit("Reshape", [view.real(0), view.integers_of(shape)]))


@converts("RESHAPE")
def _reshape(view: View) -> None:
    """The new shape is an operand or an option; of -1, its size follows from the others."""
    array = view.known(1) if view.has(1) else None
    if array is not None:
        shape = [int(each) for each in array.reshape(-1)]
    elif view.has(1) and view.result().open:
        wide = view.emit("Cast", [view.stored(1)], to=CODES["int64"])
        view.put(view.emit("Reshape", [view.real(0), wide]))
        return
    else:
        shape = list(view.integers("NewShape") or view.result().shape)
    elements = view.tensor(0).elements
    if -1 not in shape and prod(shape) != elements:
        raise view.error(f"a shape of {elements} elements", shape)
    if not flatten(view, view.result().shape):
        reshape(view, shape)


def flatten(view: View, shape: Sequence[int]) -> bool:
    """Makes the result an image's rows, where the image is held with channels first, and stays so.

    A dense layer behind it takes its weights in that order. Returns False where the result is none
    or the image isn't held so.
    """
    tensor = view.tensor(0)
    if view.draft.in_file_order(tensor) or len(shape) != 2 or shape[0] != tensor.shape[0]:
        return False
    batch, rows, columns, channels = tensor.shape
    sizes = view.integers_of((batch, rows * columns * channels))
    flat = view.emit("Reshape", [view.real(0, FIRST), sizes])
    if has_one_order(tensor):
        view.put(flat)
        return True
    view.draft.flattened[view.result().index] = channels, rows, columns
    view.put(flat, FLAT)
    return True


@converts("SQUEEZE")
def _squeeze(view: View) -> None:
    shape = view.shape(0)
    axes = {view.axis(axis, len(shape)) for axis in view.integers("SqueezeDims")}
    axes = axes or {axis for axis, size in enumerate(shape) if size == 1}
    reshape(view, [size for axis, size in enumerate(shape) if axis not in axes])


@converts("EXPAND_DIMS")
def _expand_dims(view: View) -> None:
    (axis,) = view.numbers(1, "an axis")
    shape = list(view.shape(0))
    shape.insert(view.axis(axis, len(shape) + 1), 1)
    reshape(view, shape)


@converts("TRANSPOSE")
def _transpose(view: View) -> None:
    perm = [view.axis(axis, view.rank(0)) for axis in view.numbers(1, "an order of axes")]
    if sorted(perm) != list(range(view.rank(0))):
        raise view.error(f"an order of {view.rank(0)} axes", perm)
    view.put(view.emit("Transpose", [view.real(0)], perm=perm))


@converts("BROADCAST_TO")
def _broadcast(view: View) -> None:
    shape = view.numbers(1, "a shape")
    view.put(view.emit("Expand", [view.real(0), view.integers_of(shape)]))


@converts("BROADCAST_ARGS")
def _broadcast_shapes(view: View) -> None:
    shapes = [tuple(view.numbers(index, "a shape")) for index in range(2)]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise view.error("shapes that broadcast", " and ".join(map(str, shapes))) from None
    view.draft.known[view.result().index] = np.array(shape, view.result().dtype)


@converts("TILE")
def _tile(view: View) -> None:
    counts = view.numbers(1, "a number of repeats for each axis")
    view.put(view.emit("Tile", [view.real(0), view.integers_of(counts)]))


@converts("SHAPE")
def _shape(view: View) -> None:
    """Known now, where it doesn't depend on data."""
    if view.tensor(0).open:
        shape = view.emit("Shape", [view.stored(0)])
        view.draft.put_stored(
            view.result(), view.emit("Cast", [shape], to=CODES[view.result().dtype])
        )
        return
    view.draft.known[view.result().index] = np.array(view.shape(0), view.result().dtype)


@converts("RANK")
def _rank(view: View) -> None:
    view.draft.known[view.result().index] = np.array(view.rank(0), view.result().dtype)


@converts("FILL")
def _fill(view: View) -> None:
    shape = view.emit("Cast", [view.stored(0)], to=CODES["int64"])
    view.put(view.emit("Expand", [view.real(1), shape]))


@converts("RANGE")
def _range(view: View) -> None:
    view.put(view.emit("Range", [view.real(index) for index in range(3)]))


@converts("REVERSE_V2")
def _reverse(view: View) -> None:
    rank = view.rank(0)
    axes = [view.axis(axis, rank) for axis in view.numbers(1, "axes")]
    ends = ([-1] * len(axes), [np.iinfo(np.int64).min] * len(axes), axes, [-1] * len(axes))
    operands = [view.integers_of([int(each) for each in values]) for values in ends]
    view.put(view.emit("Slice", [view.real(0), *operands]))
