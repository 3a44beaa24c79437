"""Fourier transforms. A complex number is two floats, along a last axis that the file hasn't."""

from __future__ import annotations

import numpy as np

from vdla.compiler.frontend.tflite.operator import View, converts


@converts("RFFT2D")
def _rfft(view: View) -> None:
    """The transform of real rows of a known length, whose other axis has one element.

    Raises:
        UnsupportedError: it has more of them.
    """
    rows, length = view.numbers(1, "a length for each of two axes")
    shape = view.shape(0)
    if rows != 1 or shape[-2] != 1 or shape[-1] != length:
        raise view.unsupported(f"data of rows of [1, {length}]", list(shape[-2:]))
    pair = view.emit("Unsqueeze", [view.real(0), view.integers_of([-1])])
    size = view.draft.constant(np.array(length, np.int64), f"{view.name}.length")
    axis = view.draft.constant(np.array(len(shape) - 1, np.int64), f"{view.name}.axis")
    result = view.emit("DFT", [pair, size, axis], onesided=1)
    view.draft.put_stored(view.result(), result)


def part_of(view: View, index: int) -> str:
    """The real parts of complex numbers, 0, or the imaginary ones, 1."""
    place = view.draft.constant(np.array(index, np.int64), f"{view.name}.part")
    return view.emit("Gather", [view.stored(0), place], axis=-1)


@converts("REAL")
def _real(view: View) -> None:
    view.put(part_of(view, 0))


@converts("IMAG")
def _imaginary(view: View) -> None:
    view.put(part_of(view, 1))


@converts("COMPLEX_ABS")
def _length(view: View) -> None:
    axis = view.integers_of([-1])
    view.put(view.emit("ReduceL2", [view.stored(0), axis], keepdims=0))
