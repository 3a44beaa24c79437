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

What is padded, moved or converted is copied for a band of rows that stays in the second-level
cache. Threads share the bands where there are enough of them and every thread can read all weights
from its own cache; else they share a band's copying and then its tiles. A depthwise convolution
has no channels that others read: its bands are of one block each.
"""

from __future__ import annotations

from math import prod

from vdla.compiler.graph.express import KEPT
from vdla.compiler.graph.ops.blocked import MOST_PLACES, divisor, tile_of_image
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Vectors
from vdla.compiler.targets.processor.operators.nests import in_registers, share, sums_in_registers
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import ComputeOp
from vdla.compiler.tir.ir import Buffer
from vdla.runtime.dtypes import dtype_of

BAND_BYTES = 1 << 18  # of a convolution's input that is copied before it is used
DEPTHWISE_BYTES = 1 << 16  # the same of one block
WEIGHT_BYTES = 1 << 19  # that stay in a thread's own second-level cache
JOBS = 8  # bands that are enough for threads to share
FEWEST_TILES = 4  # one below the other, of which bands are made for threads
WINDOW = 2  # axes of a reduction that goes over no channels


def schedule_convolution(s: Schedule, result: Tensor, vectors: Vectors) -> None:
    """A convolution [N, O/l, H, W, l] and its epilogue."""
    acc = s.buffers["acc"]
    assert isinstance(acc, Tensor)
    _, blocks, height, width, _ = acc.shape
    words = s[acc].reduce_axis[4:]  # of four integers, which are one step
    depthwise = len(s[acc].reduce_axis) == WINDOW
    registers = vectors.word_registers if words else vectors.registers
    high, wide = _places(height, width, registers)
    at_once = 1 if depthwise else _blocks_at_once(blocks, high * wide, registers)
    tiles = height // high
    shared = KEPT in s.stages and (depthwise or _weights_stay(s, tiles))
    of_a_band = min(_tiles_of_a_band(s, tiles, shared), -(-result.shape[2] // high))
    out = s[result]
    n, o, y, x, l = out.axis
    oo, oi = out.split(o, factor=at_once)
    xo, xi = out.split(x, factor=wide)
    yo, yi = out.split(y, factor=high)
    band, yo = out.split(yo, factor=of_a_band)
    outer = [n, oo, band] if shared and depthwise else [n, band, oo]
    in_registers(out, [*outer, yo, xo], [yi, xi, oi], l)
    if shared:
        band = out.fuse(*outer) if depthwise else out.fuse(n, band)
        out.parallel(band)
    else:
        out.parallel(out.fuse(oo, yo))
    s[acc].compute_at(out, xo)
    n, o, y, x, _ = s[acc].axis
    sums_in_registers(s[acc], [n, *s[acc].reduce_axis[:4]], [y, x, o], words, vectors)
    if KEPT in s.stages:
        s[KEPT].compute_at(out, band)
        s[KEPT].vectorize(s[KEPT].axis[-1])
        if not shared:
            *rows, _ = s[KEPT].axis
            share(s[KEPT], rows, prod(s.buffers[KEPT].shape))


def _weights_stay(s: Schedule, tiles: int) -> bool:
    """Whether threads that share bands each keep all weights in their own cache."""
    op = s["acc"].op
    assert isinstance(op, ComputeOp)
    sizes = [_bytes(tensor) for tensor in op.inputs if tensor.name != KEPT]
    return tiles >= FEWEST_TILES and max(sizes) <= WEIGHT_BYTES


def _bytes(tensor: Buffer) -> int:
    return tensor.span * dtype_of(tensor.dtype).itemsize


def _tiles_of_a_band(s: Schedule, tiles: int, shared: bool) -> int:
    """How many tiles one below the other a band has, of so many."""
    if KEPT not in s.stages:
        return tiles
    row = _bytes(s.buffers[KEPT]) // tiles
    if len(s["acc"].reduce_axis) == WINDOW:
        blocks = s.buffers[KEPT].shape[1]
        return divisor(tiles, DEPTHWISE_BYTES * blocks // row)
    most = BAND_BYTES // row
    return divisor(tiles, min(most, tiles // JOBS) if shared else most)


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
