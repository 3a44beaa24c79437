"""What convolutions and pools share: windows that step over an image."""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.targets.accelerator.codegen.axes import MAX_PAD
from vdla.compiler.targets.accelerator.operators.access import Size


class Window:
    """The sizes of a template whose windows step over an image of channel blocks."""

    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns from a window's first tap to its last."""
        (kh, kw), (dy, dx) = self.kernel, self.dilations
        return (kh - 1) * dy + 1, (kw - 1) * dx + 1

    @property
    def out_height(self) -> int:
        """Rows of the output."""
        return (self.height + self.pads[0] + self.pads[2] - self.window[0]) // self.strides[0] + 1

    @property
    def out_width(self) -> int:
        """Columns of the output."""
        return (self.width + self.pads[1] + self.pads[3] - self.window[1]) // self.strides[1] + 1

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

    def paddable(self, tall: Size, wide: Size, entries: int) -> Size:
        """Whether one LOAD can pad any tile of a size whose pixels are some entries each."""
        top, left, bottom, right = self.pads
        rows, cols = np.minimum(max(top, bottom), tall), np.minimum(max(left, right), wide)
        return np.maximum(rows, cols * entries) <= MAX_PAD

    def named(self, noun: str) -> str:
        """How errors name it."""
        pad = max(self.pads)
        padded = f" padded by {pad} (at most {MAX_PAD} in one LOAD)" if pad > MAX_PAD else ""
        return f"a {self.kernel[0]}×{self.kernel[1]} {noun}{padded}"


def _kernel(node: ops.QConv2d | ops.QMaxPool | ops.QAvgPool, graph: Graph) -> tuple[int, ...]:
    if isinstance(node, ops.QConv2d):
        return graph.tensors[node.weight].shape[2:]
    return node.kernel


def only_padding(node: ops.QConv2d | ops.QMaxPool | ops.QAvgPool, graph: Graph) -> str | None:
    """Why the host is the place for windows that never look at the image, in a direction: strides
    step over all of it."""
    kernel = _kernel(node, graph)
    image, out = graph.tensors[node.data].shape[2:], graph.tensors[node.output].shape[2:]
    for i in range(2):
        positions = range(-node.pads[i], out[i] * node.strides[i] - node.pads[i], node.strides[i])
        taps = range(0, kernel[i] * node.dilations[i], node.dilations[i])
        if not any(0 <= p + tap < image[i] for p in positions for tap in taps):
            return "every window lies in the padding"
    return None
