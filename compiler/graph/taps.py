"""Few input channels: a convolution's taps become channels, so that the lanes are filled.

A first layer of 3 channels would fill 3 of 16 lanes. Its image is made on the host anyway, where it
is quantized; there each window's row, column or all of it is written out as channels (im2col), and
the accelerator gets a convolution with a smaller kernel over more channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import ceil, prod

import numpy as np

from vdla.compiler.graph import ir
from vdla.compiler.graph.capability import MIN_FILL, refusal
from vdla.compiler.graph.infer import shape_of
from vdla.compiler.graph.ir import Array, Graph, Node, TensorType
from vdla.isa.config import Config

ON_HOST = (ir.Quantize, ir.FlipSign)


def fold_taps(graph: Graph, config: Config, min_fill: float = MIN_FILL) -> Graph:
    """Folds taps of convolutions that are refused for their few channels.

    before: y = QConv2d(x: [1, 3, 224, 224], w: [64, 3, 7, 7])
    after:  p = Im2col(x) kernel=(7, 7): [1, 147, 112, 112]; y = QConv2d(p, w': [64, 147, 1, 1])

    Of rows, columns and both, what takes the fewest cycles is folded. The data must come from the
    host; bit for bit the result is the same.
    """
    makers = graph.producers()
    nodes: list[Node] = []
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    for node in graph.nodes:
        folds = []
        if type(node) is ir.QConv2d and node.groups == 1 and _wanted(node, graph, config, min_fill):
            maker = makers.get(node.data)
            if maker is None or isinstance(maker, ON_HOST):
                choices = product((False, True), repeat=2)
                folds = [_Fold(node, graph, rows, cols) for rows, cols in choices if rows or cols]
        if folds:
            best = min(folds, key=lambda fold: fold.cycles(config))
            tensors[best.patches.output] = best.kind
            constants[best.conv.weight] = best.weight
            tensors[best.conv.weight] = TensorType(best.weight.shape, "int8")
            nodes += [best.patches, best.conv]
        else:
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes), tensors=tensors, constants=constants)


def _wanted(node: ir.QConv2d, graph: Graph, config: Config, min_fill: float) -> bool:
    channels = graph.tensors[node.data].shape[1]
    too_few = channels < min(min_fill, 1.0) * config.block_in
    return too_few and refusal(node, graph, config, 0.0) is None


@dataclass(frozen=True)
class _Fold:
    """One way to fold: all rows of the window, all columns, or both."""

    node: ir.QConv2d
    graph: Graph
    rows: bool
    cols: bool

    @property
    def patches(self) -> ir.Im2col:
        """The node that writes the taps out as channels."""
        n, kernel = self.node, self.graph.tensors[self.node.weight].shape[2:]
        top, left, bottom, right = n.pads
        return ir.Im2col(
            name=f"{n.name}.taps",
            output=f"{n.name}.taps",
            data=n.data,
            kernel=(kernel[0] if self.rows else 1, kernel[1] if self.cols else 1),
            strides=self._chosen(n.strides, (1, 1)),
            pads=(
                top if self.rows else 0,
                left if self.cols else 0,
                bottom if self.rows else 0,
                right if self.cols else 0,
            ),
            dilations=self._chosen(n.dilations, (1, 1)),
            fill=n.in_zp,
        )

    @property
    def kind(self) -> TensorType:
        """The type of what it writes."""
        data = self.graph.tensors[self.node.data]
        shape = shape_of(self.patches, [data.shape])
        assert shape is not None
        return replace(data, shape=shape)

    @property
    def conv(self) -> ir.QConv2d:
        """The convolution that is left."""
        n = self.node
        top, left, bottom, right = n.pads
        return replace(
            n,
            data=self.patches.output,
            weight=f"{n.weight}.taps",
            strides=self._chosen((1, 1), n.strides),
            pads=(
                0 if self.rows else top,
                0 if self.cols else left,
                0 if self.rows else bottom,
                0 if self.cols else right,
            ),
            dilations=self._chosen((1, 1), n.dilations),
        )

    @property
    def weight(self) -> Array:
        """Its weight, taps among the channels."""
        weight = self.graph.constants[self.node.weight]
        o, c, kh, kw = weight.shape
        fh, fw = (kh if self.rows else 1), (kw if self.cols else 1)
        split = weight.reshape(o, c, fh, kh // fh, fw, kw // fw).transpose(0, 1, 2, 4, 3, 5)
        return np.ascontiguousarray(split).reshape(o, c * fh * fw, kh // fh, kw // fw)

    def cycles(self, config: Config) -> tuple[float, float]:
        """What multipliers or memory take at least, and the multipliers alone."""
        o, c, kh, kw = self.weight.shape
        pixels = prod(self.graph.tensors[self.node.output].shape[2:])
        steps = ceil(c / config.block_in) * kh * kw
        compute = pixels * steps * ceil(o / config.block_out)
        block = config.channel_block
        moved = block * ceil(c / block) * prod(self.kind.shape[2:])
        moved += block * ceil(o / block) * pixels
        bandwidth = min(config.port_bytes, config.memory.bytes_per_cycle)
        return max(compute, moved / bandwidth), compute

    def _chosen(self, folded: ir.Pair, kept: ir.Pair) -> ir.Pair:
        return (folded[0] if self.rows else kept[0], folded[1] if self.cols else kept[1])
