"""A convolution over all channels or those of groups, with output channels in the lanes of vectors.

It computes a tile of its output at a time: some places of the image in some blocks of channels,
whose sums stay in registers while the reduction runs. In each step every input element is
multiplied with a vector of weights for each block (Georganas et al., "Anatomy of High-Performance
Deep Learning Convolutions on SIMD Architectures", SC'18)::

    for blocks: for y: for x:                          a tile
        for input channel, window row, window column:  the reduction
            for place: for block: acc[block, place, lanes] += data[place] * weight[block, lanes]
        for place, block: out = epilogue(acc)

The tile has as many places and blocks as registers hold sums, beside the weights and one element:
some columns of a row, or of several rows where the image is narrow. Weights are rearranged at
compile time. Where a result's blocks are half a vector, two of them are summed in one: 24 channels
take two vectors, and 200 take 13, half of one of which is idle.

What is padded, moved or converted is copied for a band of rows that stays in the second-level
cache. Threads share the bands where there are enough of them and every thread can read all weights
from its own cache; else they share a band's copying and then its tiles.

A vector of channels of several groups reads the input channels of all of them, with weights of 0
where a lane's group doesn't: the reduction runs over as many blocks from the first one on that the
vector needs, and not over all.

On integers four input channels are one step: data as uint8, 128 more than the int8 they were, times
int8 weights. What is too much, 128 and the zero point times the sum of a channel's weights, is
taken off the bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph, Known, Node, Recipe
from vdla.compiler.graph.ops.conv2d import AnyConv2d, Conv2d, QConv2d
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.intrinsics import WORD_BYTES
from vdla.compiler.targets.processor.description.processor import Processor, Vectors
from vdla.compiler.targets.processor.operators.image import (
    FEW_CHANNELS,
    Data,
    Place,
    Reading,
    block_for,
    divisor,
    float_parameters,
    image_of_sums,
    int8_of_sums,
    integer_parameters,
    is_depthwise,
    read_data,
    sums_shape,
    tiling_of,
)
from vdla.compiler.targets.processor.operators.nests import share, sums_in_registers
from vdla.compiler.targets.processor.operators.template import Template
from vdla.compiler.targets.processor.operators.tiles import Tiling, tile_result
from vdla.compiler.te import IterVar, Tensor
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Buffer, Expr
from vdla.runtime.dtypes import dtype_of
from vdla.support.numbers import ceil_div

BAND_BYTES = 1 << 18  # of the padded data of a band
WEIGHT_BYTES = 1 << 19  # that stay in a thread's own second-level cache
JOBS = 8  # bands that are enough for threads to share
FEWEST_TILES = 4  # one below the other, of which bands are made for threads
MOST_IDLE = 8  # channels that the groups of a vector see, for each that one of them does


@dataclass(frozen=True)
class Convolution(Template[AnyConv2d]):
    """``sums`` is [N, O/l, H, W, l], H and W whole tiles, O whole vectors, of the data in
    ``source``, which is ``padded`` where they are copied; ``word`` the axis of the four bytes that
    one instruction multiplies, of integers."""

    NODES: ClassVar[tuple[type[Node], ...]] = (Conv2d, QConv2d)

    source: Tensor
    padded: Tensor | None
    sums: Tensor
    tiling: Tiling
    word: IterVar | None
    result: Tensor
    vectors: Vectors

    @classmethod
    def channel_block(
        cls, node: AnyConv2d, operands: Sequence[TensorType], known: Known, vectors: Vectors
    ) -> int:
        """Channels per block: a vector's lanes, or half of them; 0 where a vector would see many
        more channels than each of its lanes."""
        lanes, (data, weight) = vectors.lanes, (each.shape for each in operands[:2])
        if node.groups > 1:
            inner = operands[0].block or weight[1]
            _, count = _spans(weight, node.groups, inner, lanes)
            if is_depthwise(node, data, weight) or count * inner > MOST_IDLE * weight[1]:
                return 0
        return block_for(node, operands, known, (lanes, lanes // 2))

    @classmethod
    def refusal(cls, node: AnyConv2d, graph: Graph, processor: Processor) -> str | None:
        """The result has to lie in blocks of channels."""
        data, weight = (graph.tensors[name].shape for name in (node.data, node.weight))
        if not graph.tensors[node.output].block:
            return "its channels don't lie in blocks"
        return "it is depthwise" if is_depthwise(node, data, weight) else None

    @classmethod
    def of(cls, node: AnyConv2d, recipe: Recipe, processor: Processor) -> Convolution:
        """Sums in float32, or of integers in int32, and what makes the result of them."""
        vectors, lanes = processor.vectors, _lanes(node, recipe, processor.vectors)
        if isinstance(node, QConv2d):
            tiling = tiling_of(node, recipe, lanes, vectors.word_registers)
            data, sums, word = _integer_sums(node, recipe, lanes, tiling)
            of_blocks = _in_blocks(node, recipe, sums, tiling)
            value = int8_of_sums(node, recipe, of_blocks, fused=vectors.fused)
            result = node.finished(recipe, value)
            return cls(data.source, data.padded, sums, tiling, word, result, vectors)
        assert isinstance(node, Conv2d)
        tiling = tiling_of(node, recipe, lanes, vectors.registers)
        data, sums = _float_sums(node, recipe, lanes, tiling)
        of_blocks = _in_blocks(node, recipe, sums, tiling)
        result = te.compute(recipe.out_shape, of_blocks, "out")
        return cls(data.source, data.padded, sums, tiling, None, result, vectors)

    @property
    def placed(self) -> tuple[Tensor, ...]:
        """The padded data."""
        return () if self.padded is None else (self.padded,)

    def schedule(self, s: Schedule, result: Tensor) -> None:
        """Tiles of registers, in bands of rows."""
        padded, out, lanes = self.padded, s[result], self.sums.shape[-1]
        tiles = self.tiling.rows
        shared = self._weights_stay(s, tiles)
        rows = self._tiles_of_a_band(tiles, shared)
        together = min(self.tiling.blocks * (lanes // result.shape[-1]), result.shape[1])
        loops = tile_result(out, self.tiling, together, rows)
        band = loops.band
        if shared:
            band = out.fuse(loops.n, band)
            out.parallel(band)
        else:
            out.parallel(out.fuse(loops.blocks, loops.y))
        sums = s[self.sums]
        sums.compute_at(out, loops.x)
        n, o, y, x, _ = sums.axis
        words = [] if self.word is None else sums.reduce_axis[-1:]
        steps = sums.reduce_axis[: len(sums.reduce_axis) - len(words)]
        sums_in_registers(sums, [n, *steps], [y, x, o], words, self.vectors)
        if padded is not None:
            s[padded].compute_at(out, band)
            s[padded].vectorize(s[padded].axis[-1])
            if not shared:
                *each, _ = s[padded].axis
                share(s[padded], each, prod(padded.shape))

    def _weights_stay(self, s: Schedule, tiles: int) -> bool:
        """Whether threads that share bands each keep all weights in their own cache."""
        op = s[self.sums].op
        assert isinstance(op, ComputeOp)
        sizes = [_bytes(tensor) for tensor in op.inputs if tensor is not self.source]
        return tiles >= FEWEST_TILES and max(sizes) <= WEIGHT_BYTES

    def _tiles_of_a_band(self, tiles: int, shared: bool) -> int:
        """Number of tiles one below the other in a band, of so many."""
        most = BAND_BYTES // (_bytes(self.source) // tiles)
        most = min(most, tiles // JOBS) if shared else most
        return divisor(tiles, most if self.padded else most * 3 // 2)


def _bytes(tensor: Buffer) -> int:
    return tensor.span * dtype_of(tensor.dtype).itemsize


# The sums ---------------------------------------------------------------------------------------


def _lanes(conv: AnyConv2d, recipe: Recipe, vectors: Vectors) -> int:
    """Channels of a vector of sums: one block of the result, or a whole vector where it has several
    smaller ones."""
    block = recipe.block(conv.output)
    return block if recipe.shape(conv.output)[1] == block else vectors.lanes


def _in_blocks(conv: AnyConv2d, recipe: Recipe, sums: Tensor, tiling: Tiling) -> Place:
    """The sum at n, block, y, x, channel of a block, of sums whose vectors have some blocks."""
    at, block = image_of_sums(conv, recipe, sums, tiling), recipe.block(conv.output)
    in_one = sums.shape[-1] // block
    if in_one == 1:
        return at

    def of_vector(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        return at(b, te.floordiv(c, in_one), y, x, te.floormod(c, in_one) * block + l)

    return of_vector


def _float_sums(conv: Conv2d, recipe: Recipe, lanes: int, tiling: Tiling) -> tuple[Data, Tensor]:
    """[N, O/l, H, W, l]: bias + Σ data * weight in float32."""
    weight, start = float_parameters(conv, recipe)
    inner = recipe.block(conv.data) or weight.shape[1]
    split = _split(weight, conv.groups, inner, lanes)
    firsts = _firsts(conv, recipe, inner, lanes)
    data, sums, _ = _dots(conv, recipe, split, start, firsts, tiling)
    return data, sums


def _integer_sums(
    conv: QConv2d, recipe: Recipe, lanes: int, tiling: Tiling
) -> tuple[Data, Tensor, IterVar | None]:
    """[N, O/l, H, W, l]: bias + Σ (data - zero) * weight in int32, and the axis of a word."""
    weight, bias = integer_parameters(conv, recipe)
    more = (conv.zeros[0] + 128) * weight.astype(np.int64).sum(axis=(1, 2, 3))
    start = (bias - more).astype(np.int32)  # of sums that fit in int32 modulo 2**32
    inner = recipe.block(conv.data) or ceil_div(weight.shape[1], WORD_BYTES) * WORD_BYTES
    split = _split(weight, conv.groups, inner, lanes)  # [O/l, I/inner, KH, KW, inner, l]
    words = split.reshape(*split.shape[:4], inner // WORD_BYTES, WORD_BYTES, split.shape[-1])
    firsts = _firsts(conv, recipe, inner, lanes)
    split = np.ascontiguousarray(words.swapaxes(-1, -2))
    return _dots(conv, recipe, split, start, firsts, tiling)


def _spans(weight: Shape, groups: int, inner: int, lanes: int) -> tuple[list[int], int]:
    """The first block of ``inner`` input channels that each vector of output channels reads, and
    how many from there on; of weights [O, I/groups, …]."""
    o, i, *_ = weight
    own, blocks = o // groups, ceil_div(groups * i, inner)
    ends = [(n, min(n + lanes, o) - 1) for n in range(0, o, lanes)]
    low = [first // own * i // inner for first, _ in ends]
    high = [ceil_div((last // own + 1) * i, inner) for _, last in ends]
    count = max(h - l for l, h in zip(low, high, strict=True))
    return [min(l, blocks - count) for l in low], count


def _firsts(conv: AnyConv2d, recipe: Recipe, inner: int, lanes: int) -> Tensor | None:
    """The first block that each vector reads, as a table; None where it is the first of all."""
    low, count = _spans(recipe.shape(conv.weight), conv.groups, inner, lanes)
    if not any(low):
        return None
    most = ceil_div(recipe.shape(conv.data)[1], inner) - count
    return recipe.constant("first", np.array(low, np.int32), (0, most))


def _split(weight: Array, groups: int, inner: int, lanes: int) -> Array:
    """[O/l, I/inner, KH, KW, inner, l], I those that a vector reads; channels up to a multiple of
    ``inner`` and ``lanes`` are 0."""
    o, i, kh, kw = weight.shape
    low, count = _spans(weight.shape, groups, inner, lanes)
    whole = np.zeros((len(low), lanes, count * inner, kh, kw), weight.dtype)
    for group in range(groups):
        channels = np.arange(group * o // groups, (group + 1) * o // groups)
        for vector in np.unique(channels // lanes):
            own, at = channels[channels // lanes == vector], group * i - low[vector] * inner
            whole[vector, own % lanes, at : at + i] = weight[own]
    split = whole.reshape(len(low), lanes, count, inner, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1))


def _dots(
    conv: AnyConv2d,
    recipe: Recipe,
    weight: Array,
    bias: Array,
    firsts: Tensor | None,
    tiling: Tiling,
) -> tuple[Data, Tensor, IterVar | None]:
    """The data, the sums of a convolution, and the axis of a word.

    ``weight`` is [O/l, I/inner, KH, KW, inner, l], or of words [O/l, I/inner, KH, KW, inner/4, l,
    4]; ``firsts`` has the first block of input channels for each vector, where there are groups.
    """
    vectors, blocks, kh, kw, *rest = weight.shape
    words, kind = len(rest) == 3, str(bias.dtype)
    lanes = rest[1]
    table = recipe.constant("weight", weight)
    whole = np.zeros(vectors * lanes, bias.dtype)
    whole[: len(bias)] = bias
    start = recipe.constant("bias", whole.reshape(-1, lanes))
    reading = Reading.unsigned(conv.zeros[0]) if isinstance(conv, QConv2d) else Reading.floats()
    inner = rest[0] * WORD_BYTES if words else rest[0]
    in_rows = not (words or recipe.block(conv.data)) and inner <= FEW_CHANNELS
    data = read_data(conv, recipe, inner, reading, tiling, in_rows=in_rows)
    ry, rx = te.reduce_axis((0, kh), "ry"), te.reduce_axis((0, kw), "rx")
    rc, rl = te.reduce_axis((0, blocks), "rc"), te.reduce_axis((0, rest[0]), "rl")
    rk = [te.reduce_axis((0, WORD_BYTES), "rk")] if words else []
    (sh, sw), (dh, dw) = conv.strides, conv.dilations

    def dot(b: Expr, c: Expr, y: Expr, x: Expr, l: Expr) -> Expr:
        channel = rl * WORD_BYTES + rk[0] if rk else rl
        block = rc if firsts is None else rc + firsts[c]
        element = data.at(b, block, y * sh + ry * dh, x * sw + rx * dw, channel)
        product = element.astype(kind) * table[(c, rc, ry, rx, rl, l, *rk)].astype(kind)
        return te.sum(product, axis=[rc, ry, rx, rl, *rk], init=start[c, l])

    sums = te.compute(sums_shape(conv, recipe, lanes, tiling), dot, "acc")
    return data, sums, rk[0] if rk else None
