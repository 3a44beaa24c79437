"""How a convolution of channel blocks runs on a processor.

It computes a tile of its output at a time: some places of the image in some blocks of channels,
whose sums stay in registers while the reduction runs. In each step every input element is
multiplied with a vector of weights for each block::

    for blocks: for y: for x:                          a tile
        for input channel, window row, window column:  the reduction
            for place: for block: acc[block, place, lanes] += data[place] * weight[block, lanes]
        for place, block: out = epilogue(acc)

The tile has as many places and blocks as registers hold sums, beside the weights and one element:
some columns of a row, or of several rows where the image is narrow.
What is padded or moved is copied for a band of rows that stays in the second-level cache.
"""

from __future__ import annotations

from math import prod

from vdla.compiler.codegen.target import Vectors
from vdla.compiler.graph.express import KEPT
from vdla.compiler.graph.ops.blocked import MOST_PLACES, divisor, tile_of_image
from vdla.compiler.host.nests import in_registers, share, sums_in_registers
from vdla.compiler.schedule import Schedule
from vdla.compiler.te import Tensor

BAND_BYTES = 1 << 18  # of a convolution's input that is copied before it is used
FLOAT_BYTES = 4


def schedule_convolution(s: Schedule, result: Tensor, vectors: Vectors) -> None:
    """A convolution [N, O/l, H, W, l] and its epilogue."""
    acc = s.buffers["acc"]
    assert isinstance(acc, Tensor)
    _, blocks, height, width, _ = acc.shape
    words = s[acc].reduce_axis[4:]  # of four integers, which are one step
    registers = vectors.word_registers if words else vectors.registers
    high, wide = _places(height, width, registers)
    at_once = _blocks_at_once(blocks, high * wide, registers)
    out = s[result]
    n, o, y, x, l = out.axis
    oo, oi = out.split(o, factor=at_once)
    xo, xi = out.split(x, factor=wide)
    yo, yi = out.split(y, factor=high)
    tiles = min(_tiles_of_a_band(s, height // high), -(-result.shape[2] // high))
    band, yo = out.split(yo, factor=tiles)
    in_registers(out, [n, band, oo, yo, xo], [yi, xi, oi], l)
    out.parallel(out.fuse(oo, yo))
    s[acc].compute_at(out, xo)
    n, o, y, x, _ = s[acc].axis
    sums_in_registers(s[acc], [n, *s[acc].reduce_axis[:4]], [y, x, o], words, vectors)
    if KEPT in s.stages:
        s[KEPT].compute_at(out, band)
        s[KEPT].vectorize(s[KEPT].axis[-1])
        *rows, _ = s[KEPT].axis
        share(s[KEPT], rows, prod(s.buffers[KEPT].shape))


def _places(height: int, width: int, registers: int) -> tuple[int, int]:
    """Rows and columns of a tile: they divide the image, and leave room for two blocks if they
    can."""
    high, wide = tile_of_image(height, width)
    most = min(MOST_PLACES, registers // 2 - 2)
    wide = divisor(wide, most)
    return divisor(high, most // wide), wide


def _blocks_at_once(blocks: int, places: int, registers: int) -> int:
    """Blocks of a tile, beside whose sums there is room for their weights and one element."""
    most = max((registers - 1) // (places + 1), 1)
    return divisor(blocks, min(most, 8))


def _tiles_of_a_band(s: Schedule, tiles: int) -> int:
    """How many tiles one below the other a band has."""
    if KEPT not in s.stages:
        return tiles
    row = FLOAT_BYTES * s.buffers[KEPT].span // tiles
    return divisor(tiles, max(BAND_BYTES // row, 1))
