"""Several tensors as one: concatenations and stacks."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.operator import View, converts


@converts("CONCATENATION")
def _concatenate(view: View) -> None:
    layout, rank = view.layout(), view.rank(0)
    axis = layout.axis(view.axis(view.integer("Axis"), rank), rank)
    parts = [view.real(index, layout) for index in range(view.count)]
    view.finish(view.emit("Concat", parts, axis=axis), layout)


@converts("PACK")
def _pack(view: View) -> None:
    """Operands side by side along a new axis."""
    axis = view.axis(view.integer("Axis"), view.rank(0) + 1)
    place = view.integers_of([axis])
    parts = [view.emit("Unsqueeze", [view.real(i), place]) for i in range(view.count)]
    view.put(view.emit("Concat", parts, axis=axis))
