"""Elements by their indices: gathers, scatters, tables of embeddings."""

from __future__ import annotations

import numpy as np

from vdla.compiler.frontend.tflite.drafting import CODES
from vdla.compiler.frontend.tflite.operator import View, converts


@converts("GATHER")
def _gather(view: View) -> None:
    """Parts along an axis; of each batch its own, where the axis is the first behind batches."""
    axis = view.axis(view.integer("Axis"), view.rank(0))
    batches = view.integer("BatchDims")
    if batches == 0:
        view.put(view.emit("Gather", [view.real(0), view.stored(1)], axis=axis))
        return
    if batches != axis:
        raise view.unsupported(f"batches of {axis} axes, as before the gathered one", batches)
    wide = view.emit("Cast", [view.stored(1)], to=CODES["int64"])
    index = view.emit("Unsqueeze", [wide, view.integers_of([-1])])
    view.put(view.emit("GatherND", [view.real(0), index], batch_dims=batches))


@converts("GATHER_ND")
def _gather_rows(view: View) -> None:
    index = view.emit("Cast", [view.stored(1)], to=CODES["int64"])
    view.put(view.emit("GatherND", [view.real(0), index]))


@converts("EMBEDDING_LOOKUP")
def _embed(view: View) -> None:
    """Rows of a table; indices come first."""
    view.put(view.emit("Gather", [view.real(1), view.stored(0)], axis=0))


@converts("ONE_HOT")
def _one_hot(view: View) -> None:
    """Operands: indices, the number of classes, the value of a hit, that of a miss."""
    one = view.integers_of([1])
    depth = view.emit("Reshape", [view.stored(1), one])
    ends = [view.emit("Reshape", [view.real(i), one]) for i in (3, 2)]
    values = view.emit("Concat", ends, axis=0)
    axis = view.integer("Axis", -1)
    view.put(view.emit("OneHot", [view.stored(0), depth, values], axis=axis))


@converts("SCATTER_ND")
def _scatter(view: View) -> None:
    """Zeros of a shape, to which updates are added at their indices."""
    shape = view.numbers(2, "a shape")
    dtype = view.tensor(1).dtype if not view.tensor(1).quantized else "float32"
    zero = view.draft.constant(np.zeros((), dtype), f"{view.name}.zero")
    zeros = view.emit("Expand", [zero, view.integers_of(shape)])
    index = view.emit("Cast", [view.stored(0)], to=CODES["int64"])
    view.put(view.emit("ScatterND", [zeros, index, view.real(1)], reduction="add"))
