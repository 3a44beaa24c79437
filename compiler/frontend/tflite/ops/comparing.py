"""Comparisons, choices between two operands, and where a condition holds."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.operator import View, converts
from vdla.compiler.frontend.tflite.ops.elements import both

COMPARISONS = {
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
}


@converts(*COMPARISONS)
def _compare(view: View) -> None:
    both(view, lambda a, b: view.emit(COMPARISONS[view.operator.name], [a, b]))


@converts("NOT_EQUAL")
def _differ(view: View) -> None:
    both(view, lambda a, b: view.emit("Not", [view.emit("Equal", [a, b])]))


@converts("SELECT", "SELECT_V2")
def _select(view: View) -> None:
    """A condition of one axis chooses whole rows, where the operator is the older one."""
    condition, rank = view.stored(0), view.rank(1)
    if view.operator.name == "SELECT" and view.rank(0) == 1 and rank > 1:
        shape = (-1, *(1,) * (rank - 1))
        condition = view.emit("Reshape", [condition, view.integers_of(shape)])
    view.put(view.emit("Where", [condition, view.real(1), view.real(2)]))


@converts("WHERE")
def _where(view: View) -> None:
    """Rows of indices, one for each element that isn't false."""
    places = view.emit("NonZero", [view.stored(0)])
    view.draft.put_stored(view.result(), view.emit("Transpose", [places], perm=(1, 0)))
