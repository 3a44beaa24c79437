"""The schedule space of a convolution: which tiles the buffers hold, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np

from vdla.compiler.targets.accelerator.codegen.nest import MAX_UOPS
from vdla.compiler.targets.accelerator.operators.access import Size, accesses
from vdla.compiler.targets.accelerator.operators.conv2d.schedule import expression
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import (
    ConvSizes,
    ConvTile,
    kept_copies,
)
from vdla.compiler.targets.accelerator.operators.cost import (
    MOST_STAGES,
    STARTUP,
    Places,
    TileCost,
    beside_gemm,
    fetch,
    group_cycles,
    loaded_beside,
    pace,
    parts,
    sizes,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.nest import Issue, Loop, Nest
from vdla.isa.config import Config
from vdla.support.numbers import divisors

VARIANTS = tuple(product(("", "inp", "wgt"), (True, False)))  # what is stationary, and resident


class Space:
    """The legal tiles of a convolution on a config, and what they cost."""

    def __init__(self, shape: ConvSizes, config: Config) -> None:
        self.shape, self.config, self.tensors = shape, config, expression(shape, config.untimed)
        self.indices = accesses(self.tensors.out)
        self.si = config.channel_block // config.block_in
        self.so = config.channel_block // config.block_out
        self.taps = shape.kernel[0] * shape.kernel[1]

    def tiles(self, vthreads: int, only: ConvTile | None = None) -> Iterator[ConvTile]:
        """The legal tiles; with ``only``, those of its size."""
        knobs, stages = self._legal(vthreads, only)
        values, copies = knobs.T.tolist(), stages.tolist()
        for at, variant in np.argwhere(stages > 0).tolist():
            stationary, resident = VARIANTS[variant]
            yield _tile(values[at], vthreads, resident, stationary, copies[at][variant])

    def candidates(self, vthreads: int) -> Iterator[tuple[Places, ConvTile]]:
        """The legal tiles of each variant as one with columns, and where ``tiles`` has them."""
        knobs, stages = self._legal(vthreads, None)
        places = np.cumsum(stages > 0).reshape(stages.shape) - 1
        for variant, (stationary, resident) in enumerate(VARIANTS):
            at = np.flatnonzero(stages[:, variant])
            if len(at):
                tile = _tile(knobs[:, at], vthreads, resident, stationary, stages[at, variant])
                yield places[at, variant], tile

    def _legal(self, vthreads: int, only: ConvTile | None) -> tuple[Places, Places]:
        """[5, n] the knobs of tiles, and [n, variant] their buffer copies; 0 where not legal."""
        knobs = self._sizes(only)
        stages = np.zeros((knobs.shape[1], len(VARIANTS)), np.int64)
        for variant, (stationary, resident) in enumerate(VARIANTS):
            tile = _tile(knobs, vthreads, resident, stationary)
            stages[:, variant] = self._stages(tile)
        return knobs, np.minimum(stages, MOST_STAGES if vthreads > 1 else 1)

    def _sizes(self, only: ConvTile | None) -> Places:
        """[5, n] outputs, rows, cols, inputs and weights of tiles, the weights changing first."""
        s, most = self.shape, min(MAX_UOPS, self.config.uop_depth)
        heights = sizes(parts(s.out_height), only, "rows")
        widths = sizes(parts(s.out_width), only, "cols")
        ins = [
            n
            for n in sizes(divisors(s.inputs), only, "inputs")
            if n == 1 or n * self.si * self.taps <= most  # a step is one sequence of micro-ops
        ]
        outs = [
            (n, weights)
            for n in sizes(divisors(s.outputs), only, "outputs")
            for weights in sizes(divisors(n), only, "weights")
        ]
        counts = len(heights), len(widths), len(ins), len(outs)
        at = np.indices(counts).reshape(4, -1)
        choices = [np.array(each, np.int64) for each in (heights, widths, ins)]
        rows, cols, inputs = (c[i] for c, i in zip(choices, at, strict=False))
        outputs, weights = np.array(outs, np.int64).reshape(-1, 2)[at[3]].T
        return np.stack([outputs, rows, cols, inputs, weights])

    def _stages(self, tile: ConvTile) -> Size:
        """Number of buffer copies that fit, of the operands that change; 0 where a tile isn't
        legal.
        """
        s, c, e, nest = self.shape, self.config, self.tensors, self.nest(tile)
        step, part = nest.inside("step"), nest.inside("part")
        *_, tall, wide, _, _ = nest.spans(e.data, step)
        legal = s.paddable(tall, wide, self.si) & (self._acc(nest, tile) <= c.depth("acc"))
        if tile.stationary == "wgt":  # a portion of what is kept lies densely
            legal &= (tile.inputs == s.inputs) | (tile.weights == tile.outputs)
        most = np.where(legal, MOST_STAGES, 0)
        wgt = "wgt4" if s.weights4 else "wgt"
        operands = ("inp", "inp", e.data, step), ("wgt", wgt, e.weight, part)
        for name, memory, tensor, inside in operands:
            entry = c.entry(memory)
            if tile.stationary == name:
                kept = kept_copies(s, tile) * nest.held(tensor, nest.inside("tile")) // entry
                most = np.where(kept <= c.depth(name), most, 0)
            else:
                copies = c.depth(name) // (nest.held(tensor, inside) // entry)
                most = np.minimum(most, copies)
        return most

    def _acc(self, nest: Nest, tile: ConvTile) -> Size:
        """ACC entries of all threads' tiles, biases and scales."""
        e, lanes, in_tile = self.tensors, self.config.block_out, nest.inside("tile")
        rows = sum(prod(row.shape) for row in e.rows)
        tiles = 1 + self.shape.moving + self.shape.bytes * self.shape.planes
        out = nest.held(e.out, in_tile) * tiles * tile.vthreads + rows
        level = 0 if tile.resident else in_tile
        channels: Size = 0
        for tensor in (*e.channels, *([e.residual] if e.fixed is not None and e.residual else [])):
            channels = channels + nest.held(tensor, level)
        copies = 1 if tile.resident else tile.vthreads
        return (out + channels * copies) // lanes

    def nest(self, tile: ConvTile) -> Nest:
        """The loops of ``schedule``."""
        e, inputs = self.tensors, self.shape.inputs
        n, g, o, y, x, *_ = e.out.axis
        over = {
            "n": Loop("tile", n),
            "g": Loop("tile", g),
            "o": Loop("tile", o, tile.outputs),
            "y": Loop("tile", y, tile.rows),
            "x": Loop("tile", x, tile.cols),
        }
        outer = [over[axis] for axis in tile.order]
        step, part = Loop("step", e.acc.reduce_axis[0], tile.inputs), Loop("part", o, tile.weights)
        in_tile, in_step = len(outer), len(outer) + 1
        portions = tile.outputs // tile.weights
        copies = self.shape.kernel[1] if self.shape.spread else 1
        inp = Issue("inp", in_step, tile.inputs * copies, e.data)  # one LOAD per channel block
        wgt = Issue("wgt", in_step + 1, 1, e.weight)
        if tile.stationary == "inp":
            inp = Issue("inp", outer.index(over["x"]) + 1, inputs * copies, e.data)
        if tile.stationary == "wgt":
            count = inputs // tile.inputs * portions
            wgt = Issue("wgt", outer.index(over["o"]) + 1, count, e.weight)
        level = 0 if tile.resident else in_tile
        held = [*e.channels, *([e.residual] if self.shape.fixed else [])]
        channels = [Issue("bias", level, 1, t) for t in held]
        gemm, store = Issue("gemm", in_step + 1), Issue("out", in_tile, portions, e.out)
        finish = []
        if self.shape.moving:
            finish.append(Issue("residual", in_tile, tile.outputs, e.residual))
        if self.shape.alu_steps:
            finish.append(Issue("alu", in_tile, self.shape.alu_steps))
        issues = [inp, wgt, *channels, gemm, *finish, store]
        return Nest(e.out, self.indices, [*outer, step, part], issues)

    def cost(self, tile: ConvTile) -> TileCost:
        """The work of a candidate, averaged over full and partial tiles."""
        s, c, e, nest = self.shape, self.config, self.tensors, self.nest(tile)
        _, _, o, y, x, *_ = e.out.axis
        block, portions = c.channel_block, tile.outputs // tile.weights
        down, across = nest.tiles(y), nest.tiles(x)
        rows, cols = s.out_height / down, s.out_width / across
        *_, tall, wide, _, _ = nest.spans(e.data, nest.inside("step"))
        copies = s.kernel[1] if s.spread else 1
        wide = wide // copies
        seen = np.minimum(tall, s.height) * np.minimum(wide, s.width)
        run = np.minimum(wide, s.width)
        if s.sampling[1] > 1:
            run = np.ones_like(run)
        elif not (s.pads[1] or s.pads[3] or s.spread):
            run = np.where(wide >= s.width, seen, run)
        inp = tile.inputs * transfer(seen * block, run * block, c)
        inp += tile.inputs * self.si * np.maximum(tall * wide - seen, 0)  # what is padded
        inp *= s.planes * copies
        weights = nest.portion("wgt", "part")
        outs, pixels = tile.outputs * self.so, rows * cols
        stored = block * np.dtype(e.out.dtype).itemsize
        moved = tile.outputs * transfer(pixels * stored, cols * stored, c)
        chain = tile.inputs * self.si * self.taps
        side = loaded_beside(moved, chain, c) if s.moving else 0.0
        if not tile.resident:
            rows = sum(t.shape[0] if len(t.shape) > 2 else 1 for t in e.channels)
            side = side + transfer(rows * outs * c.acc_entry, outs * c.acc_entry, c)
            side = side + fetch(len(e.channels), c)
        alu: Size = 0.0
        if s.alu_steps:
            alu = beside_gemm(s.alu_steps * outs * pixels, chain, c) + STARTUP
            alu = alu + group_cycles(s.multiplications * outs * pixels, c)
        return TileCost(
            pairs=0,
            singles=nest.trips["tile"],
            threads=tile.vthreads,
            steps=s.inputs // tile.inputs,
            parts=portions,
            inp=inp + fetch(1, c),
            wgt=transfer(weights, weights, c) + fetch(2, c),
            gemm=tile.weights * self.so * pixels * chain * s.planes,
            side=side,
            alu=alu,
            store=moved + fetch(portions, c),
            shared=False,
            stages=tile.stages,
            inp_every=nest.tiles(o) if tile.stationary == "inp" else 1,
            wgt_every=down * across if tile.stationary == "wgt" else 1,
            pace=pace(c),
            inner=nest.tiles(o) if tile.stationary == "inp" else 1,
            across=across,
            wide=tile.cols / cols,
            down=down,
            tall=tile.rows / rows,
        )


@lru_cache(maxsize=64)
def space_of(shape: ConvSizes, config: Config) -> Space:
    """The space of a convolution, which is asked for tiles and then for what many of them cost."""
    return Space(shape, config)


def _tile(
    knobs: Iterable[Any], vthreads: int, resident: bool, stationary: str, stages: Any = 1
) -> ConvTile:
    """A tile, or one with columns where knobs and stages are columns."""
    outputs, rows, cols, inputs, weights = knobs
    return ConvTile(outputs, rows, cols, inputs, weights, vthreads, resident, stationary, stages)
