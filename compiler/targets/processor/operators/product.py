"""How a product of matrices runs on a processor.

Threads share the tiles (``graph/ops/matrices.py``): the sums of one stay in registers while k runs.
Tiles of the left factor are rearranged for a band of them, which stays in the second-level cache
while every panel of the right factor passes it once.
"""

from __future__ import annotations

from math import prod

from vdla.compiler.graph.express import PANELS, ROWS, TILE
from vdla.compiler.graph.ops.matrices import tiles_of_a_band
from vdla.compiler.schedule import Schedule
from vdla.compiler.targets.processor.description.processor import Vectors
from vdla.compiler.targets.processor.operators.nests import (
    in_registers,
    schedule_nest,
    sums_in_registers,
)
from vdla.compiler.te import Tensor
from vdla.runtime.dtypes import dtype_of

MANY = 8  # matrices of a stack, which threads then share


def schedule_product(s: Schedule, result: Tensor, vectors: Vectors) -> None:
    """A product of matrices, its sums […, M/r, N/(w*l), r, w, l], and its epilogue."""
    *stack, tiles, _, high, wide, lanes = s.buffers[TILE].shape
    out = s[result]
    step, *words = s[TILE].reduce_axis  # of four integers, which are one step
    *stacks, y, x = out.axis
    t, r = out.split(y, factor=high)
    if ROWS in s.stages:
        rows = s.buffers[ROWS]
        size = dtype_of(rows.dtype).itemsize * prod(rows.shape[-2 - len(words) :])
        tiles = tiles_of_a_band(tiles, size)
    band, t = out.split(t, factor=min(tiles, -(-result.shape[-2] // high)))
    p, x = out.split(x, factor=min(wide * lanes, result.shape[-1]))
    v, l = out.split(x, factor=min(lanes, result.shape[-1]))
    in_registers(out, [*stacks, band, p, t], [r, v], l)
    band, tile = out.fuse(*stacks, band), out.fuse(p, t)
    out.parallel(tile if prod(stack) < MANY else band)
    sums = s[TILE]
    sums.compute_at(out, tile)
    *_, r, v, _ = sums.axis
    sums_in_registers(sums, [step], [r, v], words, vectors)
    if ROWS in s.stages:
        s[ROWS].compute_at(out, band)
        schedule_nest(s, s[ROWS], vectors.lanes)
    if PANELS in s.stages:
        s[PANELS].vectorize(s[PANELS].axis[-1])
        schedule_nest(s, s[PANELS], vectors.lanes)
