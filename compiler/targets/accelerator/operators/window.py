"""Base of convolutions and pools: windows that step over an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.window import Window
from vdla.compiler.targets.accelerator.codegen.axes import MAX_PAD
from vdla.compiler.targets.accelerator.operators.access import Size


class Windowed:
    """A template whose windows step over an image of channel blocks: the fields that say how."""

    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]

    @property
    def window(self) -> Window:
        """Kernel, strides, pads and dilations as a window."""
        return Window(self.kernel, self.strides, self.pads, self.dilations)

    @property
    def out_height(self) -> int:
        """Rows of the output."""
        return self.window.places((self.height, self.width))[0]

    @property
    def out_width(self) -> int:
        """Columns of the output."""
        return self.window.places((self.height, self.width))[1]

    @property
    def padded(self) -> bool:
        """Whether any window reaches outside the image."""
        return any(self.pads)

    @property
    def sampling(self) -> tuple[int, int]:
        """Strides that loading takes over, so that what they skip isn't loaded."""
        return 1, 1

    @property
    def steps(self) -> tuple[int, int]:
        """Strides on what has been loaded."""
        return self.strides[0] // self.sampling[0], self.strides[1] // self.sampling[1]

    def paddable(self, tall: Size, wide: Size, entries: int) -> NDArray[np.bool_]:
        """Whether one LOAD can pad any tile of a size whose pixels are some entries each."""
        top, left, bottom, right = self.pads
        rows, cols = np.minimum(max(top, bottom), tall), np.minimum(max(left, right), wide)
        return np.asarray(np.maximum(rows, cols * entries) <= MAX_PAD)

    def named(self, noun: str) -> str:
        """Name of the window for errors."""
        pad = max(self.pads)
        padded = f" padded by {pad} (at most {MAX_PAD} in one LOAD)" if pad > MAX_PAD else ""
        return f"a {self.kernel[0]}×{self.kernel[1]} {noun}{padded}"


def only_padding(node: ops.Windowed, graph: Graph) -> str | None:
    """Reason for which windows that never look at the image, in a direction, are left to the
    processor: strides step over all of it."""
    window = node.window([graph.tensors[name].shape for name in node.inputs])
    image = graph.tensors[node.data].shape[2:]
    for i, (size, count) in enumerate(zip(image, window.places(image), strict=True)):
        stride, first = window.strides[i], -window.pads[i]
        positions = range(first, count * stride + first, stride)
        taps = range(0, window.kernel[i] * window.dilations[i], window.dilations[i])
        if not any(0 <= p + tap < size for p in positions for tap in taps):
            return "every window lies in the padding"
    return None


def padded_fields(rows: Size, cols: Size) -> NDArray[np.bool_]:
    """Whether one LOAD can fill an image of a size with padding alone."""
    return np.asarray(np.maximum(rows, cols) <= 2 * MAX_PAD)
