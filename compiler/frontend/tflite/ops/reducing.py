"""Operators over whole axes: means, sums, the largest element's place, softmax, cumulative sums."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.drafting import CODES
from vdla.compiler.frontend.tflite.layout import Layout
from vdla.compiler.frontend.tflite.operator import FILE, FIRST, View, converts

REDUCTIONS = {
    "MEAN": "ReduceMean",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
    "SUM": "ReduceSum",
}
FLOOR = 1e-6  # of the sum of squares that L2_NORMALIZATION divides by


@converts(*REDUCTIONS)
def _reduce(view: View) -> None:
    rank = view.rank(0)
    axes = sorted({view.axis(axis, rank) for axis in view.numbers(1, "axes")})
    kept = view.flag("KeepDims")
    layout = view.layout(0) if kept else _flattened(view, axes)
    held = [layout.axis(axis, rank) for axis in axes]
    result = view.emit(
        REDUCTIONS[view.operator.name],
        [view.real(0, layout), view.integers_of(held)],
        keepdims=int(kept),
        noop_with_empty_axes=1,
    )
    view.put(result, layout if kept else FILE)


def _flattened(view: View, axes: list[int]) -> Layout:
    """The order of an image whose axes go, where those that stay are in the file's order."""
    tensor = view.tensor(0)
    left = [axis for axis in range(len(tensor.shape)) if axis not in axes]
    places = [FIRST.axis(axis, len(tensor.shape)) for axis in left]
    if view.draft.in_file_order(tensor) or places != sorted(places):
        return FILE
    return FIRST


@converts("REDUCE_ANY", "REDUCE_ALL")
def _truth(view: View) -> None:
    """The largest or the smallest of truth values, as numbers."""
    rank = view.rank(0)
    axes = sorted({view.axis(axis, rank) for axis in view.numbers(1, "axes")})
    kind = "ReduceMax" if view.operator.name == "REDUCE_ANY" else "ReduceMin"
    numbers = view.emit("Cast", [view.stored(0)], to=CODES["int32"])
    kept = int(view.flag("KeepDims"))
    result = view.emit(kind, [numbers, view.integers_of(axes)], keepdims=kept)
    view.put(view.emit("Cast", [result], to=CODES["bool"]))


@converts("ARG_MAX", "ARG_MIN")
def _place(view: View) -> None:
    (axis,) = view.numbers(1, "an axis")
    kind = "ArgMax" if view.operator.name == "ARG_MAX" else "ArgMin"
    axis = view.axis(axis, view.rank(0))
    place = view.emit(kind, [view.real(0)], axis=axis, keepdims=0)
    if view.result().dtype != "int64":
        place = view.emit("Cast", [place], to=CODES[view.result().dtype])
    view.draft.put_stored(view.result(), place)


@converts("TOPK_V2")
def _top(view: View) -> None:
    """The largest of the last axis, sorted, and their places."""
    (count,) = view.numbers(1, "a number of elements")
    names = [view.draft.names.fresh(f"{view.name}.{each}") for each in ("values", "places")]
    view.draft.emit_all("TopK", [view.real(0), view.integers_of([count])], names, axis=-1)
    view.put(names[0])
    places = view.result(1)
    cast = view.emit("Cast", [names[1]], to=CODES[places.dtype])
    view.draft.put_stored(places, cast)


@converts("SOFTMAX")
def _softmax(view: View) -> None:
    """Softmax of ``beta`` times the data, along the last axis."""
    layout, beta = view.layout(), view.decimal("Beta", 1.0)
    data = view.real(0, layout)
    if beta != 1.0:
        data = view.emit("Mul", [data, view.float_of(beta)])
    view.put(view.emit("Softmax", [data], axis=_last(view, layout)), layout)


@converts("LOG_SOFTMAX")
def _log_softmax(view: View) -> None:
    layout = view.layout()
    axis = _last(view, layout)
    view.put(view.emit("LogSoftmax", [view.real(0, layout)], axis=axis), layout)


@converts("L2_NORMALIZATION")
def _l2(view: View) -> None:
    """Data by the root of the sum of their squares along the last axis."""
    layout = view.layout()
    data, axis = view.real(0, layout), view.integers_of([_last(view, layout)])
    squares = view.emit("ReduceSumSquare", [data, axis], keepdims=1)
    norm = view.emit("Sqrt", [view.emit("Max", [squares, view.float_of(FLOOR)])])
    view.finish(view.emit("Div", [data, norm]), layout)


def _last(view: View, layout: Layout) -> int:
    """The place at which the data's last axis is held."""
    return layout.axis(-1, view.rank(0))


@converts("CUMSUM")
def _cumulate(view: View) -> None:
    (axis,) = view.numbers(1, "an axis")
    result = view.emit(
        "CumSum",
        [view.real(0), view.draft.integers([view.axis(axis, view.rank(0))], f"{view.name}.axis")],
        exclusive=int(view.flag("Exclusive")),
        reverse=int(view.flag("Reverse")),
    )
    view.put(result)
