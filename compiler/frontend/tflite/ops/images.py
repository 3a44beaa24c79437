"""Pixels that become channels, and channels that become pixels."""

from __future__ import annotations

from vdla.compiler.frontend.tflite.operator import FIRST, View, converts
from vdla.compiler.frontend.tflite.ops.sliding import check_image


@converts("DEPTH_TO_SPACE")
def _depth_to_space(view: View) -> None:
    check_image(view, 0)
    size = view.integer("BlockSize", 1)
    view.put(view.emit("DepthToSpace", [view.real(0, FIRST)], blocksize=size, mode="DCR"), FIRST)


@converts("SPACE_TO_DEPTH")
def _space_to_depth(view: View) -> None:
    check_image(view, 0)
    size = view.integer("BlockSize", 1)
    view.put(view.emit("SpaceToDepth", [view.real(0, FIRST)], blocksize=size), FIRST)
