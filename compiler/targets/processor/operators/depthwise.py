"""A depthwise convolution, with channels in the lanes of vectors.

A tile of its output, some places of the image in one block of channels, stays in registers while
the window's rows and columns run. No channel is read by another, so a band is of one block: its
padded data stay in a cache, and threads share the bands::

    for image, block, band of rows:                   shared by threads
        copy the padded data of the band
        for y: for x:                                 a tile
            for window row, window column:
                for place: acc[place, lanes] += data[place, lanes] * weight[lanes]

Sums of int8 are in float32 where it has them exactly, which multiplies and adds at once; else in
int32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph, Known, Node, Recipe
from vdla.compiler.graph.ops.conv2d import AnyConv2d, Conv2d, QConv2d
from vdla.compiler.graph.types import Array, TensorType
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.targets.processor.operators.image import (
    EXACT_FLOAT,
    Data,
    Reading,
    block_for,
    divisor,
    float_parameters,
    image_of_sums,
    int8_of_sums,
    integer_parameters,
    is_depthwise,
    largest_sum,
    read_data,
    sums_shape,
    tiling_of,
)
from vdla.compiler.targets.processor.operators.nests import in_registers
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.targets.processor.operators.tiles import Tiling, tile_result
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.runtime.dtypes import dtype_of
from vdla.support.numbers import ceil_div

BAND_BYTES = 1 << 18  # of the padded data of a band
JOBS = 8  # bands that are enough for threads to share


@dataclass(frozen=True)
class Depthwise(Template[AnyConv2d]):
    """``sums`` is [N, C/l, H, W, l], H and W whole tiles."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Conv2d, QConv2d)

    padded: Tensor | None
    sums: Tensor
    tiling: Tiling
    result: Tensor
    vectors: Vectors

    @classmethod
    def channel_block(
        cls, node: AnyConv2d, operands: Sequence[TensorType], known: Known, vectors: Vectors
    ) -> int:
        """The block of its data; where they lie plain, a vector's lanes, or half as many."""
        data, weight = operands[:2]
        if node.groups == 1 or not is_depthwise(node, data.shape, weight.shape):
            return 0
        sizes = (data.block,) if data.block else (vectors.lanes, vectors.lanes // 2)
        return block_for(node, operands, known, sizes)

    @classmethod
    def refusal(cls, node: AnyConv2d, graph: Graph, processor: Processor) -> str | None:
        """The result has to lie in blocks of channels that don't see each other."""
        data, weight = (graph.tensors[name].shape for name in (node.data, node.weight))
        if not graph.tensors[node.output].block:
            return "its channels don't lie in blocks"
        return None if is_depthwise(node, data, weight) else "it isn't depthwise"

    @classmethod
    def of(cls, node: AnyConv2d, recipe: Recipe, processor: Processor) -> Depthwise:
        """Sums over the window, and what makes the result of them."""
        vectors = processor.vectors
        tiling = tiling_of(node, recipe, recipe.block(node.output), vectors.registers)
        if isinstance(node, QConv2d):
            data, sums = _integer_sums(node, recipe, tiling)
            at = image_of_sums(node, recipe, sums, tiling)
            value = int8_of_sums(node, recipe, at, fused=vectors.fused)
            return cls(data.padded, sums, tiling, node.finished(recipe, value), vectors)
        assert isinstance(node, Conv2d)
        data, sums = _float_sums(node, recipe, tiling)
        at = image_of_sums(node, recipe, sums, tiling)
        result = te.compute(recipe.out_shape, at, "out")
        return cls(data.padded, sums, tiling, result, vectors)

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The padded data."""
        return () if self.padded is None else (self.padded,)

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Tiles of registers, in bands of rows of one block."""
        padded, out = self.padded, s[result]
        rows = self._tiles_of_a_band(self.tiling.rows)
        loops = tile_result(out, self.tiling, 1, rows, blocks_first=padded is not None)
        band = loops.band
        if padded is not None:
            band = out.fuse(loops.n, loops.blocks, band)
            out.parallel(band)
        else:
            out.parallel(out.fuse(loops.blocks, loops.y))
        sums = s[self.sums]
        sums.compute_at(out, loops.x)
        n, o, y, x, l = sums.axis
        in_registers(sums, [n, *sums.reduce_axis], [y, x, o], l)
        if padded is not None:
            s[padded].compute_at(out, band)
            s[padded].vectorize(s[padded].axis[-1])

    def _tiles_of_a_band(self, tiles: int) -> int:
        """Number of tiles one below the other in a band, of so many."""
        if self.padded is None:
            return tiles
        images, blocks, *_ = self.padded.shape
        row = self.padded.span * dtype_of(self.padded.dtype).itemsize // (images * blocks * tiles)
        parts = ceil_div(JOBS, images * blocks)
        return divisor(tiles, min(BAND_BYTES // row, tiles // parts))


def _float_sums(conv: Conv2d, recipe: Recipe, tiling: Tiling) -> tuple[Data, Tensor]:
    """[N, C/l, H, W, l]: bias + Σ data * weight in float32."""
    weight, start = float_parameters(conv, recipe)
    return _taps(conv, recipe, weight, start, Reading.floats(), tiling)


def _integer_sums(conv: QConv2d, recipe: Recipe, tiling: Tiling) -> tuple[Data, Tensor]:
    """[N, C/l, H, W, l]: bias + Σ (data - zero) * weight, exactly."""
    weight, bias = integer_parameters(conv, recipe)
    if largest_sum(weight, bias, conv.zeros[0]) < EXACT_FLOAT:
        floats, start = weight.astype(np.float32), bias.astype(np.float32)
        reading = Reading.centered(conv.zeros[0], "float32")
        return _taps(conv, recipe, floats, start, reading, tiling)
    reading = Reading.centered(conv.zeros[0], "int16")
    return _taps(conv, recipe, weight.astype(np.int16), bias, reading, tiling)


def _taps(
    conv: AnyConv2d,
    recipe: Recipe,
    weight: Array,
    bias: Array,
    reading: Reading,
    tiling: Tiling,
) -> tuple[Data, Tensor]:
    """The data, and the sums in the bias's type."""
    o, _, kh, kw = weight.shape
    lanes, kind = recipe.block(conv.output), str(bias.dtype)
    taps = weight.reshape(o // lanes, lanes, kh, kw).transpose(0, 2, 3, 1)
    table = recipe.constant("weight", np.ascontiguousarray(taps))
    start = recipe.constant("bias", bias.reshape(-1, lanes))
    data = read_data(conv, recipe, lanes, reading, tiling)
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    (sh, sw), (dh, dw) = conv.strides, conv.dilations

    def tap(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        element = data.at(b, c, y * sh + ry * dh, x * sw + rx * dw, l)
        product = element.astype(kind) * table[c, ry, rx, l].astype(kind)
        return te.sum(product, axis=[ry, rx], init=start[c, l])

    return data, te.compute(sums_shape(conv, recipe, lanes, tiling), tap, "acc")
