"""Changes of what a tensor's elements are: quantization, its reverse, and casts."""

from __future__ import annotations

import numpy as np

from vdla.compiler.frontend.tflite.contents import COMPLEX
from vdla.compiler.frontend.tflite.drafting import CODES, is_real
from vdla.compiler.frontend.tflite.operator import View, converts
from vdla.compiler.frontend.tflite.ops.fourier import part_of


@converts("QUANTIZE")
def _quantize(view: View) -> None:
    """Floats become integers, or integers others of another scale."""
    layout = view.layout()
    view.put(view.real(0, layout), layout)


@converts("DEQUANTIZE")
def _dequantize(view: View) -> None:
    """Constants of float16 or integers become floats here, so that they are weights."""
    tensor, array = view.tensor(0), view.known(0)
    if array is not None and not is_real(tensor):
        view.draft.known[view.result().index] = array.astype(np.float32)
        return
    if tensor.dtype == "float16":
        _cast(view)
        return
    layout = view.layout()
    view.put(view.real(0, layout), layout)


@converts("DENSIFY")
def _densify(view: View) -> None:
    """Constants are read dense."""
    view.draft.known[view.result().index] = view.constant(0, "a sparse tensor")


@converts("CAST")
def _cast(view: View) -> None:
    """A complex number becomes its real part."""
    layout, dtype = view.layout(), view.result().dtype
    if view.tensor(0).dtype == COMPLEX and dtype == "float32":
        view.put(part_of(view, 0))
        return
    if dtype not in CODES:
        raise view.unsupported("a result of numbers", dtype)
    result = view.emit("Cast", [view.stored(0, layout)], to=CODES[dtype])
    view.draft.put_stored(view.result(), result, layout)
