"""The windows of the made-up models' convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.graph.ir import Pads, Pair
from vdla.compiler.graph.ops.window import window_extent


@dataclass(frozen=True)
class Window:
    """``kernel`` rows and columns, and how they step over an image.

    ``pads`` are (top, left, bottom, right).
    """

    kernel: Pair
    strides: Pair = (1, 1)
    pads: Pads = (0, 0, 0, 0)
    dilations: Pair = (1, 1)

    @classmethod
    def square(cls, size: int, stride: int = 1, pad: int | None = None) -> Window:
        """Alike in both directions; by default padded so that a stride of 1 keeps the image's
        size (where ``size`` is odd)."""
        pad = (size - 1) // 2 if pad is None else pad
        return cls((size, size), (stride, stride), (pad, pad, pad, pad))

    @property
    def taps(self) -> int:
        """Positions under it."""
        return self.kernel[0] * self.kernel[1]

    def places(self, image: Sequence[int]) -> Pair:
        """Height and width of the result over an image of some height and width."""
        h, w = (
            window_extent(
                image[i],
                self.kernel[i],
                self.strides[i],
                self.pads[i],
                self.pads[i + 2],
                self.dilations[i],
            )
            for i in range(2)
        )
        return h, w

    def sizes(self) -> dict[str, list[int]]:
        """ONNX's attributes of convolutions and pools, but dilations: pools here have none."""
        return {
            "kernel_shape": list(self.kernel),
            "strides": list(self.strides),
            "pads": list(self.pads),
        }
