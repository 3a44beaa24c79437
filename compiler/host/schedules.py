"""How host functions run on a processor: tiles in registers, lanes, threads.

A convolution of channel blocks computes a tile of its output at a time: some columns of some blocks
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
from vdla.compiler.graph.express import KEPT, PANELS, ROWS, TILE
from vdla.compiler.schedule import Schedule
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.target.cpu import dot4
from vdla.compiler.te import Tensor
from vdla.compiler.te.tensor import ComputeOp, Operation
from vdla.compiler.tir.visitor import loads, uses

BAND_BYTES = 1 << 18  # of a convolution's input that is copied before it is used
FLOAT_BYTES = 4
MANY = 8  # matrices of a stack, which threads then share
SHARED_WORK = 1 << 14  # steps of loops from which on it is worth it to have threads share them


def schedule_function(s: Schedule, result: Tensor, vectors: Vectors) -> None:
    """Schedules a host function by what it computes."""
    acc = s.buffers.get("acc")
    if TILE in s.stages:
        schedule_product(s, result)
    elif acc is not None and len(acc.shape) == len(result.shape) == 5:
        schedule_convolution(s, result, vectors)
    else:
        for stage in list(s.stages.values()):
            if _adds_a_row(stage, vectors.lanes):
                schedule_row(s, stage, vectors.lanes)
            else:
                share(stage)


def _adds_a_row(stage: Stage, lanes: int) -> bool:
    """Whether a stage reduces rows of float32 whose elements lie side by side, in whole vectors."""
    op = stage.op
    if not isinstance(op, ComputeOp) or op.reduce is None or len(op.outputs) > 1 or not op.axis:
        return False
    *_, last = op.reduce_axis
    reads = [x for x in loads(op.reduce.source[0]) if uses(x.indices[-1], {last})]
    whole = last.extent % lanes == 0 and last.extent > lanes
    return whole and bool(reads) and op.outputs[0].dtype == "float32"


def schedule_row(s: Schedule, stage: Stage, lanes: int) -> None:
    """A reduction of rows in as many parts as a vector has lanes, which are combined at last."""
    whole = stage.op
    _, lane = stage.split(stage.reduce_axis[-1], factor=lanes)
    parts = s[s.rfactor(stage.name, lane)]
    l, *_ = parts.axis
    parts.reorder(*parts.axis[1:], *parts.reduce_axis, l)
    parts.compute_at(stage, stage.axis[-1])
    parts.vectorize(l)
    share(stage, whole)


def share(stage: Stage, op: Operation | None = None) -> None:
    """Has threads share what a stage computes, each some of its rows, where it is worth it.

    ``op`` is what it computes with the stages that are attached to it.
    """
    op = op or stage.op
    if not isinstance(op, ComputeOp):
        return
    rows = stage.axis if op.reduce is not None else stage.axis[:-1]
    if rows and prod(axis.extent for axis in op.axes) >= SHARED_WORK:
        stage.parallel(stage.fuse(*rows))


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
        share(s[KEPT])


def schedule_product(s: Schedule, result: Tensor) -> None:
    """A product of matrices, its sums […, M/r, N/(w*l), r, w, l], and its epilogue."""
    *stack, tiles, _, high, wide, lanes = s.buffers[TILE].shape
    out = s[result]
    *stacks, y, x = out.axis
    t, r = out.split(y, factor=high)
    band, t = out.split(t, factor=_tiles_of_a_band(s, tiles))
    p, x = out.split(x, factor=min(wide * lanes, result.shape[-1]))
    v, l = out.split(x, factor=min(lanes, result.shape[-1]))
    out.reorder(*stacks, band, p, t, r, v, l)
    band, tile = out.fuse(*stacks, band), out.fuse(p, t)
    out.parallel(tile if prod(stack) < MANY else band)
    out.unroll(r)
    out.unroll(v)
    out.vectorize(l)
    sums = s[TILE]
    sums.compute_at(out, tile)
    *_, r, v, l = sums.axis
    (k,) = sums.reduce_axis
    sums.reorder(k, r, v, l)
    sums.unroll(r)
    sums.unroll(v)
    sums.vectorize(l)
    if ROWS in s.stages:
        s[ROWS].compute_at(out, band)
        share(s[ROWS])
    if PANELS in s.stages:
        s[PANELS].vectorize(s[PANELS].axis[-1])
        share(s[PANELS])


def _tiles_of_a_band(s: Schedule, tiles: int) -> int:
    """How many tiles of the left factor stay in the second-level cache."""
    if ROWS not in s.stages:
        return tiles
    *_, k, high = s.buffers[ROWS].shape
    return min(tiles, max(2 * BAND_BYTES // (FLOAT_BYTES * k * high), 1))


def _columns(width: int, registers: int) -> int:
    """Columns of a tile: they divide the width, and leave room for two blocks if they can."""
    return _divisor(width, min(14, registers // 2 - 2))


def _blocks_at_once(blocks: int, columns: int, registers: int) -> int:
    """Blocks of a tile, beside whose sums there is room for their weights and one element."""
    most = max((registers - 1) // (columns + 1), 1)
    return _divisor(blocks, min(most, 8))


def _rows(s: Schedule, height: int) -> int:
    """Rows of a band."""
    if KEPT not in s.stages:
        return height
    padded = s.buffers[KEPT]
    row = FLOAT_BYTES * padded.span // padded.shape[2]
    scale = -(-padded.shape[2] // height)
    return _divisor(height, max(BAND_BYTES // (row * scale), 1))


def _divisor(size: int, most: int) -> int:
    """The largest divisor of ``size`` that is at most ``most``."""
    return next(d for d in range(min(size, max(most, 1)), 0, -1) if size % d == 0)
