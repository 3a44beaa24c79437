"""Operators of many elements to one: sums, norms, extremes, places, running totals."""

from __future__ import annotations

import numpy as np

from vdla.compiler.frontend.converters import converts
from vdla.compiler.frontend.maker import Maker
from vdla.compiler.frontend.node import OnnxNode
from vdla.compiler.graph import ops

PLAIN = {"ReduceSum": "sum", "ReduceProd": "prod", "ReduceMax": "max", "ReduceMin": "min"}


def _axes(view: OnnxNode) -> tuple[int, ...]:
    """The reduced axes: all where the node names none and ``noop_with_empty_axes`` is not set."""
    rank = len(view.shape(0))
    result = view.axes(1, rank)
    if not result and view.integer("noop_with_empty_axes", 0):
        return ()
    return result or tuple(range(rank))


@converts(*PLAIN)
def _reduce(view: OnnxNode) -> None:
    make = Maker(view)
    function, keep = PLAIN[view.proto.op_type], bool(view.integer("keepdims", 1))
    make.result(make.reduce(function, view.operand(0), _axes(view), keep))


@converts("ReduceMean")
def _mean(view: OnnxNode) -> None:
    """Imports a mean; that of an image as a pool, which the accelerator has."""
    dtype, shape = view.real_dtype(), view.shape(0)
    axes, keep = _axes(view), bool(view.integer("keepdims", 1))
    make = Maker(view)
    if len(shape) != 4 or axes != (2, 3) or dtype != "float32":
        make.result(make.reduce("mean", view.operand(0), axes, keep))
        return
    n, c, h, w = shape
    pool = ops.AvgPool(**make.names(), data=view.operand(0), kernel=(h, w))
    result = make.add(pool, dtype)
    make.result(result if keep else make.reshape(result, (n, c)))


@converts("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum")
def _norm(view: OnnxNode) -> None:
    op, keep, make = view.proto.op_type, bool(view.integer("keepdims", 1)), Maker(view)
    data = view.operand(0)
    if op in ("ReduceL2", "ReduceLogSum"):
        view.real_dtype()
    if op == "ReduceL1":
        data = make.unary("abs", data)
    elif op != "ReduceLogSum":
        data = make.binary("mul", data, data)
    total = make.reduce("sum", data, _axes(view), keep)
    after = {"ReduceL2": "sqrt", "ReduceLogSum": "log"}.get(op)
    make.result(make.unary(after, total) if after else total)


@converts("ReduceLogSumExp")
def _log_sum_exp(view: OnnxNode) -> None:
    """The largest element is taken out first, so that nothing overflows; of infinite ones the
    largest finite number, since an infinity less itself is none."""
    most = float(np.finfo(view.real_dtype()).max)
    make, data, axes = Maker(view), view.operand(0), _axes(view)
    top = make.reduce("max", data, axes)
    top = make.binary("max", make.binary("min", top, most), -most)
    powers = make.unary("exp", make.binary("sub", data, top))
    result = make.binary("add", make.unary("log", make.reduce("sum", powers, axes)), top)
    kept = make.shape(result)
    if not view.integer("keepdims", 1):
        kept = tuple(n for axis, n in enumerate(kept) if axis not in axes)
    make.result(make.reshape(result, kept))


@converts("ArgMax", "ArgMin")
def _arg(view: OnnxNode) -> None:
    shape, make = view.shape(0), Maker(view)
    axis = view.axis(view.integer("axis", 0), len(shape))
    node = ops.ArgReduce(
        **make.names(),
        data=view.operand(0),
        axis=axis,
        largest=bool(view.proto.op_type == "ArgMax"),
        last=bool(view.integer("select_last_index", 0)),
    )
    result = make.add(node, "int64")
    if not view.integer("keepdims", 1):
        result = make.reshape(result, (*shape[:axis], *shape[axis + 1 :]))
    make.result(result)


@converts("CumSum", "CumProd")
def _cumulate(view: OnnxNode) -> None:
    make = Maker(view)
    axis = int(view.constant(1, "axis").reshape(-1)[0])
    node = ops.Cumulate(
        **make.names(),
        data=view.operand(0),
        function="sum" if view.proto.op_type == "CumSum" else "prod",
        axis=view.axis(axis, len(view.shape(0))),
        exclusive=bool(view.integer("exclusive", 0)),
        reverse=bool(view.integer("reverse", 0)),
    )
    make.result(make.add(node, view.dtype(0)))


@converts("TopK")
def _top_k(view: OnnxNode) -> None:
    if not view.integer("sorted", 1):
        raise view.unsupported("sorted = 1", 0)
    data, shape, make = view.operand(0), view.shape(0), Maker(view)
    axis = view.axis(view.integer("axis", -1), len(shape))
    if view.optional(1) is not None:
        count = int(view.constant(1, "K").reshape(-1)[0])
    else:
        count = view.integer("k", 0)
    largest = bool(view.integer("largest", 1))
    for place, dtype in enumerate((view.dtype(0), "int64")):
        node = ops.TopK(
            **make.names(), data=data, axis=axis, count=count, largest=largest, places=place == 1
        )
        if view.wanted(place):
            make.result(make.add(node, dtype), place)


@converts("Hardmax")
def _hardmax(view: OnnxNode) -> None:
    """1 where the first largest element is, else 0."""
    dtype, shape, make = view.real_dtype(), view.shape(0), Maker(view)
    if view.draft.opset < 13:
        raise view.unsupported("opset 13 or later (before, it flattens)", view.draft.opset)
    axis = view.axis(view.integer("axis", -1), len(shape))
    node = ops.ArgReduce(**make.names(), data=view.operand(0), axis=axis)
    best = make.add(node, "int64")
    column = np.arange(shape[axis]).reshape([-1] + [1] * (len(shape) - axis - 1))
    same = make.binary("eq", best, make.constant(column, "int64"))
    make.result(make.cast(same, dtype))
