"""Images of other sizes."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.operator import FIRST, View, converts
from vdla.compiler.frontend.tflite.ops.sliding import check_image


@converts("RESIZE_BILINEAR")
def _bilinear(view: View) -> None:
    _resize(view, mode="linear")


@converts("RESIZE_NEAREST_NEIGHBOR")
def _nearest(view: View) -> None:
    """The nearest pixel, that before where it isn't said that centers or corners are aligned."""
    aligned = view.flag("AlignCorners") or view.flag("HalfPixelCenters")
    _resize(view, mode="nearest", nearest_mode="round_prefer_ceil" if aligned else "floor")


def _resize(view: View, **attributes: str) -> None:
    check_image(view, 0)
    sizes = view.numbers(1, "sizes")
    if len(sizes) != 2 or min(sizes) < 1:
        raise view.error("rows and columns ≥ 1", sizes)
    batch, _, _, channels = view.shape(0)
    shape = view.integers_of((batch, channels, *sizes))
    places = "asymmetric"
    if view.flag("AlignCorners"):
        places = "align_corners"
    elif view.flag("HalfPixelCenters"):
        places = "half_pixel"
    result = view.emit(
        "Resize",
        [view.real(0, FIRST), "", "", shape],
        coordinate_transformation_mode=places,
        **attributes,
    )
    view.put(result, FIRST)
