"""How a convolution by Winograd's algorithm runs on a processor.

::

    for band of rows of tiles:
        transform the image's tiles                         shared by threads
        for blocks:                                         shared by threads
            products, a tile of registers at a time
            for tile: transform back, epilogue

Every weight is read once for a band. Where the weights stay in the second-level cache, bands are so
small that their images and products stay there too; else there are few bands.
"""

from __future__ import annotations

from math import prod

from vdla.compiler.graph.express import DOTS, KEPT, SUMS, TRANSFORMED
from vdla.compiler.graph.ops.blocked import divisor
from vdla.compiler.graph.ops.winograd import FLOAT_BYTES, TILE, WIDE
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.operators.nests import in_registers, share
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Buffer

CACHE_BYTES = 1 << 20  # of the second level


def schedule_winograd(s: Schedule, result: Tensor, registers: int) -> None:
    """The stages of ``graph/ops/winograd.py`` and an epilogue [N, O/l, H, W, l]."""
    sums, dots = s.buffers[SUMS], s.buffers[DOTS]
    down, across, wide = sums.shape[2] // TILE, sums.shape[3] // TILE, divisor(sums.shape[1], WIDE)
    row = FLOAT_BYTES * s.buffers[TRANSFORMED].span // (sums.shape[0] * down)
    weights = FLOAT_BYTES * prod(_weights(s).shape)
    most = CACHE_BYTES // 8 if weights < CACHE_BYTES * 5 // 8 else CACHE_BYTES
    high = divisor(down, max(most // row, 1))
    out = s[result]
    n, o, y, x, l = out.axis
    y, yi = out.split(y, factor=TILE)
    band, y = out.split(y, factor=high)
    x, xi = out.split(x, factor=TILE)
    o, oi = out.split(o, factor=wide)
    in_registers(out, [n, band, o, oi, y, x], [yi, xi], l)
    out.parallel(o)
    for name in (SUMS, "rows"):
        s[name].compute_at(out, x)
    _transform_back(s)
    s["product"].compute_at(out, o)
    _multiply(s, high * across, wide, registers)
    s[TRANSFORMED].compute_at(out, band)
    _transform(s, prod(dots.shape))


def _weights(s: Schedule) -> Buffer:
    """The transformed weights."""
    op = s[DOTS].op
    assert isinstance(op, ComputeOp)
    return max(op.inputs, key=lambda tensor: len(tensor.shape))


def _transform_back(s: Schedule) -> None:
    *outer, y, x, l = s[SUMS].axis
    in_registers(s[SUMS], outer, [y, x], l)
    *outer, y, x, column, l = s["rows"].axis
    in_registers(s["rows"], [*outer, x, column], [y], l)


def _multiply(s: Schedule, tiles: int, wide: int, registers: int) -> None:
    """Products of matrices, one for each element of a tile."""
    n, y, x, p, k, l = s["product"].axis
    po, pi = s["product"].split(p, factor=divisor(tiles, (registers - 1) // wide - 1))
    in_registers(s["product"], [n, y, x, po], [pi, k], l)
    s[DOTS].compute_at(s["product"], po)
    *outer, p, k, l = s[DOTS].axis
    in_registers(s[DOTS], [*outer, *s[DOTS].reduce_axis], [p, k], l)


def _transform(s: Schedule, work: int) -> None:
    """The image, tile by tile."""
    image, half = s[TRANSFORMED], s["turned"]
    n, y, x, p, block, l = image.axis
    in_registers(image, [n, p, block, y], [x], l)
    half.compute_at(image, block)
    *outer, y, x, l = half.axis
    in_registers(half, [*outer, x], [y], l)
    tiles = s[KEPT]
    tiles.compute_at(image, block)
    tiles.vectorize(tiles.axis[-1])
    share(image, [n, p], work)
