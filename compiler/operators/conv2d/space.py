"""The schedule space of a convolution: which tiles the buffers hold, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import ceil, prod

from vdla.compiler.codegen.vdla.select import MAX_UOPS
from vdla.compiler.operators.conv2d.schedule import expression
from vdla.compiler.operators.conv2d.sizes import ConvSizes, ConvTile, kept_copies
from vdla.compiler.operators.cost import (
    MOST_STAGES,
    STARTUP,
    TileCost,
    divisors,
    fetch,
    parts,
    sizes,
    transfer,
)
from vdla.compiler.operators.nest import Loop, Nest, Transfer, Work
from vdla.isa.config import Config


class Space:
    """The legal tiles of a convolution on a config, and what they cost."""

    def __init__(self, shape: ConvSizes, config: Config) -> None:
        self.shape, self.config = shape, config
        self.si = config.channel_block // config.block_in
        self.so = config.channel_block // config.block_out
        self.taps = shape.kernel[0] * shape.kernel[1]
        self.blocks = shape.groups * shape.outputs * self.so

    def tiles(self, vthreads: int, only: ConvTile | None = None) -> Iterator[ConvTile]:
        """The legal tiles; with ``only``, those of its size."""
        s, most = self.shape, min(MAX_UOPS, self.config.uop_depth)
        heights = sizes(parts(s.out_height), only, "rows")
        widths = sizes(parts(s.out_width), only, "cols")
        ins = sizes(divisors(s.inputs), only, "inputs")
        outs = sizes(divisors(s.outputs), only, "outputs")
        for rows, cols in product(heights, widths):
            tall, wide = self.shape.under(rows, cols)
            if not s.paddable(tall, wide, self.si):
                continue
            for inputs, outputs in product(ins, outs):
                if inputs > 1 and inputs * self.si * self.taps > most:
                    continue  # a step's reduction is one sequence of micro-ops
                for weights in sizes(divisors(outputs), only, "weights"):
                    tile = ConvTile(outputs, rows, cols, inputs, weights, vthreads)
                    yield from self._variants(tile, tall * wide)

    def _variants(self, tile: ConvTile, window: int) -> Iterator[ConvTile]:
        """What may be kept on chip, with as many copies of the rest as fit."""
        for stationary, resident in product(("", "inp", "wgt"), (True, False)):
            if (
                stationary == "wgt"
                and tile.inputs < self.shape.inputs
                and tile.weights < tile.outputs
            ):
                continue  # a portion of what is kept lies densely
            chosen = replace(tile, stationary=stationary, resident=resident)
            if most := self._stages(chosen, window):
                yield replace(chosen, stages=min(most, MOST_STAGES) if tile.vthreads > 1 else 1)

    def counts(self, tile: ConvTile) -> dict[str, int]:
        """Tiles along each axis."""
        s = self.shape
        return {
            "n": s.batch,
            "g": s.groups,
            "o": s.outputs // tile.outputs,
            "y": ceil(s.out_height / tile.rows),
            "x": ceil(s.out_width / tile.cols),
        }

    def _acc(self, tile: ConvTile) -> int:
        """ACC entries of all threads' tiles, biases and scales."""
        residual, outs = self.shape.residual is not None, tile.outputs * self.so
        acc = outs * tile.rows * tile.cols * (2 if residual else 1) * tile.vthreads + residual
        return acc + 2 * (self.blocks if tile.resident else outs * tile.vthreads)

    def _stages(self, tile: ConvTile, window: int) -> int:
        """How many copies of what streams by fit; 0 when the tile itself doesn't."""
        c, s = self.config, self.shape
        if self._acc(tile) > c.depth("acc"):
            return 0
        step = tile.inputs * self.si
        inp, wgt = step * window, tile.weights * self.so * step * self.taps
        all_inp = s.inputs * self.si * window
        all_wgt = tile.outputs * self.so * s.inputs * self.si * self.taps
        most = []
        for name, portion, whole in (("inp", inp, all_inp), ("wgt", wgt, all_wgt)):
            if tile.stationary == name:
                copies = kept_copies(s, tile)
                most.append(MOST_STAGES if copies * whole <= c.depth(name) else 0)
            else:
                most.append(c.depth(name) // portion)
        return min(most)

    def cost(self, tile: ConvTile) -> TileCost:
        """The work of a candidate, averaged over full and partial tiles."""
        s, c = self.shape, self.config
        counts = self.counts(tile)
        down, across = counts["y"], counts["x"]
        tiles = prod(counts.values())
        rows, cols = s.out_height / down, s.out_width / across
        tall, wide = self.shape.under(tile.rows, tile.cols)
        pixels = rows * cols
        seen = min(tall, s.height) * min(wide, s.width)
        dense = wide >= s.width and not (s.pads[1] or s.pads[3])
        run = 1 if s.sampling[1] > 1 else seen if dense else min(wide, s.width)
        inp = tile.inputs * transfer(seen * c.channel_block, run * c.channel_block, c)
        inp += tile.inputs * self.si * max(tall * wide - seen, 0)
        weight_bytes = tile.weights * self.so * tile.inputs * self.si * self.taps * c.wgt_entry
        outs = tile.outputs * self.so
        moved = tile.outputs * transfer(pixels * c.channel_block, cols * c.channel_block, c)
        side = moved if s.residual else 0.0
        if not tile.resident:
            side += transfer(2 * outs * c.acc_entry, outs * c.acc_entry, c) + fetch(2, c)
        return TileCost(
            0,
            tiles,
            tile.vthreads,
            s.inputs // tile.inputs,
            tile.outputs // tile.weights,
            inp + fetch(1, c),
            transfer(weight_bytes, weight_bytes, c) + fetch(2, c),
            tile.weights * self.so * pixels * tile.inputs * self.si * self.taps,
            side,
            2 * outs * pixels + STARTUP if s.residual else 0.0,
            moved + fetch(tile.outputs // tile.weights, c),
            shared=False,
            stages=tile.stages,
            inp_every=counts["o"] if tile.stationary == "inp" else 1,
            wgt_every=down * across if tile.stationary == "wgt" else 1,
        )


def nest(shape: ConvSizes, tile: ConvTile, config: Config) -> Nest:
    """The loops of ``schedule``."""
    e = expression(shape, config)
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
    parts = tile.outputs // tile.weights
    inp = Transfer("inp", e.data, in_step, tile.inputs)
    if tile.stationary == "inp":  # one LOAD per channel block
        inp = Transfer("inp", e.data, outer.index(over["x"]) + 1, shape.inputs)
    wgt = Transfer("wgt", e.weight, in_step + 1)
    if tile.stationary == "wgt":
        portions = shape.inputs // tile.inputs * parts
        wgt = Transfer("wgt", e.weight, outer.index(over["o"]) + 1, portions)
    channels = 0 if tile.resident else in_tile
    transfers = [
        inp,
        wgt,
        Transfer("out", e.out, in_tile, parts),
        Transfer("bias", e.bias, channels),
        Transfer("bias", e.scale, channels),
    ]
    work = [Work("gemm", in_step + 1)]
    if e.residual is not None:
        transfers.append(Transfer("residual", e.residual, in_tile, tile.outputs))
        work.append(Work("alu", in_tile, 2))
    return Nest(e.out, [*outer, step, part], transfers, work)
