"""Few input channels: a convolution's taps become channels, so that the lanes are filled.

A first layer of 3 channels would fill 3 of 16 lanes. Its image is quantized on the processor
anyway; there each window's row, column or all of it is written out as channels (im2col), and
the accelerator gets a convolution with a smaller kernel over more channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from vdla.compiler.graph import ops
from vdla.compiler.graph.editor import Editor, Made, rewrite
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.ops.wide import QWideConv2d
from vdla.compiler.graph.types import Array, Pair, TensorType
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.isa.config import Config

Convolution = ops.QConv2d | QWideConv2d
CHOICES = ((False, True), (True, False), (True, True))  # whether to fold rows, columns


def fold_taps(graph: Graph, accelerator: Capability) -> Graph:
    """Folds taps of convolutions that are refused for their few channels.

    before: y = QConv2d(x: [1, 3, 224, 224], w: [64, 3, 7, 7])
    after:  p = Im2col(x) kernel=(7, 7): [1, 147, 112, 112]; y = QConv2d(p, w': [64, 147, 1, 1])

    Of rows, columns and both, what takes the fewest cycles is folded. The data must come from the
    processor; bit for bit the result is the same.
    """

    def folded(node: ops.QConv2d | QWideConv2d, editor: Editor) -> Made:
        maker = editor.maker(node.data, Node)
        written_out = editor.maker(node.data, ops.Im2col)
        if not node.is_plain or node.groups != 1 or written_out:
            return None
        now, config = editor.graph(), accelerator.config
        if not _is_wanted(node, maker, editor, accelerator):
            return None
        folds = [_fold(node, now, rows, cols) for rows, cols in CHOICES]
        best = min(folds, key=lambda fold: _cycles(fold, now, config))
        weight = _taps_as_channels(editor.constants[node.weight], best.patches.kernel)
        data = editor.tensor(best.patches.output, best.image)
        taps = editor.constant(best.conv.weight, weight)
        patches = replace(best.patches, name=data, output=data)
        return patches, replace(best.conv, data=data, weight=taps)

    return rewrite(graph, folded)


def _is_wanted(
    node: Convolution, maker: Node | None, editor: Editor, accelerator: Capability
) -> bool:
    """Whether a node is a convolution of what the processor or the caller makes, refused for its
    few channels alone."""
    of_any_fill = replace(accelerator, min_fill=0.0)
    return (
        not accelerator.takes(maker, editor)
        and not accelerator.takes(node, editor)
        and of_any_fill.takes(node, editor)
    )


class _Axis(NamedTuple):
    """A window in one direction; without arguments, one that looks at each pixel alone."""

    taps: int = 1
    stride: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1


class _Window(NamedTuple):
    """Both directions of a window."""

    down: _Axis
    across: _Axis

    @classmethod
    def of(cls, node: Convolution, graph: Graph) -> _Window:
        """A convolution's."""
        taps = graph.tensors[node.weight].shape[2:]
        fields = (taps, node.strides, node.pads[:2], node.pads[2:], node.dilations)
        down, across = zip(*fields, strict=True)
        return cls(_Axis(*down), _Axis(*across))

    def along(self, *chosen: bool) -> _Window:
        """This window in the directions chosen; in the other, each pixel alone."""
        return _Window(*(a if each else _Axis() for a, each in zip(self, chosen, strict=True)))

    @property
    def kernel(self) -> Pair:
        return self.down.taps, self.across.taps

    @property
    def attributes(self) -> dict[str, Any]:
        """Strides, pads and dilations, as fields of a node with a window."""
        down, across = self
        return {
            "strides": (down.stride, across.stride),
            "pads": (down.before, across.before, down.after, across.after),
            "dilations": (down.dilation, across.dilation),
        }


@dataclass(frozen=True)
class _Fold:
    """One way to fold: a node that writes taps out as channels, and the convolution behind it.

    ``image`` is what passes between them, ``kernel`` the convolution's.
    """

    patches: ops.Im2col
    image: TensorType
    conv: Convolution
    kernel: Pair


def _fold(node: Convolution, graph: Graph, rows: bool, cols: bool) -> _Fold:
    """Folds the window's rows, its columns, or both."""
    window = _Window.of(node, graph)
    folded, left = window.along(rows, cols), window.along(not rows, not cols)
    name = f"{node.name}.taps"
    patches = ops.Im2col(
        name=name,
        output=name,
        data=node.data,
        kernel=folded.kernel,
        fill=node.zero if isinstance(node, QWideConv2d) else node.zeros[0],
        **folded.attributes,
    )
    data = graph.tensors[node.data]
    shape = patches.result_shape([data.shape])
    conv = replace(node, data=name, weight=f"{name}.weight", **left.attributes)
    return _Fold(patches, replace(data, shape=shape), conv, left.kernel)


def _taps_as_channels(weight: Array, kernel: Pair) -> Array:
    """A weight [O, C, KH, KW], with the taps of a kernel that was folded among the channels."""
    (o, c, kh, kw), (fh, fw) = weight.shape, kernel
    split = weight.reshape(o, c, fh, kh // fh, fw, kw // fw).transpose(0, 1, 2, 4, 3, 5)
    return np.ascontiguousarray(split).reshape(o, c * fh * fw, kh // fh, kw // fw)


def _cycles(fold: _Fold, graph: Graph, config: Config) -> tuple[float, float]:
    """Cycles that multipliers or memory take at least, and those of the multipliers alone."""
    o, *image = graph.tensors[fold.conv.output].shape[1:]
    c, *folded = fold.image.shape[1:]
    pixels, block = prod(image), config.channel_block
    steps = ceil(c / config.block_in) * prod(fold.kernel)
    compute = pixels * steps * ceil(o / config.block_out)
    moved = block * (ceil(c / block) * prod(folded) + ceil(o / block) * pixels)
    bandwidth = config.bytes_per_cycle
    return max(compute, moved / bandwidth), compute
