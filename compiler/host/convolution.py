"""How a convolution of channel blocks runs on a processor.

It computes a tile of its output at a time: some columns of some blocks
of channels, whose sums stay in registers while the reduction runs. In each step every input element
is multiplied with a vector of weights for each block::

    for y: for blocks: for columns:                    a tile
        for input channel, window row, window column:  the reduction
            for column: for block: acc[block, column, lanes] += data[column] * weight[block, lanes]
        for column, block: out = epilogue(acc)

The tile has as many columns and blocks as registers hold sums, beside the weights and one element.
What is padded or moved is copied for a band of rows that stays in the second-level cache.
"""

from __future__ import annotations

from math import prod

from vdla.compiler.codegen.target import Vectors
from vdla.compiler.graph.express import KEPT
from vdla.compiler.graph.ops.blocked import divisor
from vdla.compiler.host.nests import share
from vdla.compiler.schedule import Schedule
from vdla.compiler.target.cpu import dot4
from vdla.compiler.te import Tensor

BAND_BYTES = 1 << 18  # of a convolution's input that is copied before it is used
FLOAT_BYTES = 4


def schedule_convolution(s: Schedule, result: Tensor, vectors: Vectors) -> None:
    """A convolution [N, O/l, H, W, l] and its epilogue."""
    acc = s.buffers["acc"]
    assert isinstance(acc, Tensor)
    _, blocks, height, width, _ = acc.shape
    columns = _columns(width, vectors.registers)
    at_once = _blocks_at_once(blocks, columns, vectors.registers)
    out = s[result]
    n, o, y, x, l = out.axis
    oo, oi = out.split(o, factor=at_once)
    xo, xi = out.split(x, factor=columns)
    yo, yi = out.split(y, factor=_rows(s, height))
    out.reorder(n, yo, oo, yi, xo, xi, oi, l)
    out.parallel(out.fuse(oo, yi))
    out.unroll(xi)
    out.unroll(oi)
    out.vectorize(l)
    s[acc].compute_at(out, xo)
    n, o, y, x, l = s[acc].axis
    reduced = s[acc].reduce_axis
    words = reduced[4:]  # of four integers, which are one step
    s[acc].reorder(n, y, *reduced[:4], x, o, l, *words)
    s[acc].unroll(x)
    s[acc].unroll(o)
    if words:
        s[acc].tensorize(l, dot4(f"{vectors.dot4}.{32 * acc.shape[-1]}", acc.shape[-1]))
    else:
        s[acc].vectorize(l)
    if KEPT in s.stages:
        s[KEPT].compute_at(out, yo)
        s[KEPT].vectorize(s[KEPT].axis[-1])
        *rows, _ = s[KEPT].axis
        *sizes, lanes = s.buffers[KEPT].shape
        share(s[KEPT], rows, sizes, prod(sizes) * lanes)


def _columns(width: int, registers: int) -> int:
    """Columns of a tile: they divide the width, and leave room for two blocks if they can."""
    return divisor(width, min(14, registers // 2 - 2))


def _blocks_at_once(blocks: int, columns: int, registers: int) -> int:
    """Blocks of a tile, beside whose sums there is room for their weights and one element."""
    most = max((registers - 1) // (columns + 1), 1)
    return divisor(blocks, min(most, 8))


def _rows(s: Schedule, height: int) -> int:
    """Rows of a band."""
    if KEPT not in s.stages:
        return height
    padded = s.buffers[KEPT]
    row = FLOAT_BYTES * padded.span // padded.shape[2]
    scale = -(-padded.shape[2] // height)
    return divisor(height, max(BAND_BYTES // (row * scale), 1))
