"""A convolution of floats to channels that fill no block: columns of the image in the lanes.

A tile is some output channels by some vectors of neighbouring columns of one row. Its sums stay in
registers while the input's channels and the window run; each step multiplies every vector with one
weight of each channel::

    for image, channels, row, vectors of columns:         shared by threads
        for input channel, window row, window column:
            for channel: for vector: acc[channel, vector] += data[vector] * weight[channel]

Columns that a stride steps over lie in between, so a copy of the data has them apart: column ``x``
is at ``x % stride``, ``x // stride``, where each window column finds its vectors side by side. A
signal's filter bank, whose stride is long, is read so as well. Data that have no padding and whose
rows are whole vectors are read where they lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import inside
from vdla.compiler.graph.ir import Graph, Node, Recipe
from vdla.compiler.graph.ops.conv2d import Conv2d
from vdla.compiler.graph.types import Pair
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.compiler.targets.processor.operators.image import divisor, float_parameters
from vdla.compiler.targets.processor.operators.nests import in_registers, schedule_nest
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.support.numbers import ceil_div

MOST_CHANNELS = 6  # of a tile
MOST_VECTORS = 8


@dataclass(frozen=True)
class Columns(Template[Conv2d]):
    """``sums`` is [N, O/r, OH, OW/(v*l), r, v, l]; ``data`` [N, C, H, stride, W/stride] the copy,
    where there is one."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Conv2d,)

    data: Tensor | None
    sums: Tensor
    result: Tensor
    lanes: int

    @classmethod
    def refusal(cls, node: Conv2d, graph: Graph, processor: Processor) -> str | None:
        """One group, known weights, a result in plain order whose rows fill a vector."""
        known = node.weight in graph.constants and (node.bias or node.weight) in graph.constants
        if node.groups > 1 or not known:
            return "it has groups, or weights that aren't known"
        result = graph.tensors[node.output]
        if result.block:
            return "its channels lie in blocks"
        if result.shape[3] < processor.vectors.lanes:
            return "its rows fill no vector"
        return None

    @classmethod
    def of(cls, node: Conv2d, recipe: Recipe, processor: Processor) -> Columns:
        """The sums, and the image that they are."""
        lanes = processor.vectors.lanes
        n, o, oh, ow = recipe.shape(node.output)
        channels, vectors = _tile(o, ow, lanes, processor.vectors.registers)
        wide = vectors * lanes
        blocks, tiles = ceil_div(o, channels), ceil_div(ow, wide)
        table, start = _parameters(node, recipe, blocks, channels)
        data, at = _read(node, recipe, tiles * wide)
        _, i, kh, kw, _ = table.shape
        steps = [te.reduce_axis((0, n), k) for n, k in ((i, "c"), (kh, "ry"), (kw, "rx"))]

        def dot(b: Expr, block: Expr, y: Expr, t: Expr, r: Expr, v: Expr, l: Expr) -> Expr:
            c, ry, rx = steps
            seen = at(b, c, y, (t * vectors + v) * lanes + l, ry, rx)
            return te.sum(seen * table[block, c, ry, rx, r], axis=[*steps], init=start[block, r])

        sums = te.compute((n, blocks, oh, tiles, channels, vectors, lanes), dot, "acc")

        def value(b: Expr, channel: Expr, y: Expr, x: Expr) -> Expr:
            block, r = te.floordiv(channel, channels), te.floormod(channel, channels)
            t, rest = te.floordiv(x, wide), te.floormod(x, wide)
            return sums[b, block, y, t, r, te.floordiv(rest, lanes), te.floormod(rest, lanes)]

        return cls(data, sums, te.compute(recipe.out_shape, value, "out"), lanes)

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The copy of the data."""
        return () if self.data is None else (self.data,)

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Tiles of registers, which threads share."""
        *_, channels, vectors, lanes = self.sums.shape
        out, sums = s[result], s[self.sums]
        n, o, y, x = out.axis
        block, r = out.split(o, factor=channels)
        t, x = out.split(x, factor=min(vectors * lanes, result.shape[-1]))
        v, l = out.split(x, factor=lanes)
        in_registers(out, [n, block, y, t], [r, v], l)
        tile = out.fuse(n, block, y, t)
        out.parallel(tile)
        sums.compute_at(out, tile)
        *outer, r, v, l = sums.axis
        in_registers(sums, [*outer, *sums.reduce_axis], [r, v], l)
        if self.data is not None:
            schedule_nest(s, s[self.data], self.lanes)


def _tile(channels: int, columns: int, lanes: int, registers: int) -> Pair:
    """Output channels and vectors of a tile: their sums fit the registers, beside the data of a
    step and one weight."""
    parts = ceil_div(channels, MOST_CHANNELS)
    high = ceil_div(channels, parts)
    most = min((registers - 1) // (high + 1), MOST_VECTORS)
    whole = ceil_div(columns, lanes)
    if columns % lanes == 0:  # no tile is cut
        return high, divisor(whole, most)
    return high, ceil_div(whole, ceil_div(whole, most))


def _parameters(node: Conv2d, recipe: Recipe, blocks: int, channels: int) -> tuple[Tensor, Tensor]:
    """The weights [O/r, I, KH, KW, r] and the bias [O/r, r], output channels filled up with 0."""
    weight, bias = float_parameters(node, recipe)
    whole = np.zeros((blocks * channels, *weight.shape[1:]), np.float32)
    start = np.zeros(blocks * channels, np.float32)
    whole[: len(weight)], start[: len(bias)] = weight, bias
    table = whole.reshape(blocks, channels, *weight.shape[1:]).transpose(0, 2, 3, 4, 1)
    return (
        recipe.constant("weight", np.ascontiguousarray(table)),
        recipe.constant("bias", start.reshape(blocks, channels)),
    )


def _read(node: Conv2d, recipe: Recipe, columns: int) -> tuple[Tensor | None, Callable[..., Expr]]:
    """The copy of the data, if there is one, and what stands at an image, channel, output row and
    column, window row and column; of as many columns as tiles have."""
    n, c, h, w = recipe.shape(node.data)
    window = node.window([recipe.shape(node.data), recipe.shape(node.weight)])
    _, _, oh, _ = recipe.shape(node.output)
    (sh, sw), (dh, dw), (top, left, _, _) = node.strides, node.dilations, node.pads
    tall, reach = (oh - 1) * sh + window.extents[0], window.extents[1]
    image = recipe.image(node.data)
    if sw == 1 and not any(node.pads) and columns + reach - 1 <= w:
        return None, lambda b, c, y, x, ry, rx: image(b, c, y * sh + ry * dh, x + rx * dw)
    wide = columns + (reach - 1) // sw

    def element(b: Expr, channel: Expr, y: Expr, phase: Expr, x: Expr) -> Expr:
        row, column = y - top, x * sw + phase - left
        within = te.all(inside(row, h), inside(column, w))
        return te.select(within, image(b, channel, row, column), te.const(0.0, "float32"))

    copy = te.compute((n, c, tall, sw, wide), element, "padded")

    def at(b: Expr, channel: Expr, y: Expr, x: Expr, ry: Expr, rx: Expr) -> Expr:
        phase, behind = te.floormod(rx * dw, sw), te.floordiv(rx * dw, sw)
        return copy[b, channel, y * sh + ry * dh, phase, x + behind]

    return copy, at
