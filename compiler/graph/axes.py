"""Axes that go together: an operator has the same index along each of them."""

from __future__ import annotations

from collections.abc import Sequence

from vdla.compiler.graph.types import Shape

RESULT = -1
Axis = tuple[int, int]  # of an operand, by its place among ``inputs``, or of the RESULT
Axes = Sequence[frozenset[Axis]]


def by_element(shapes: Sequence[Shape], result: Shape) -> Axes:
    """The axes of an operator that works element by element, on operands of ``shapes``."""
    rank = len(result)
    alike = [(k, shape) for k, shape in enumerate(shapes) if len(shape) == rank]
    return [
        frozenset({(RESULT, n), *((k, n) for k, shape in alike if shape[n] == result[n])})
        for n in range(rank)
    ]
