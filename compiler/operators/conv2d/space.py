"""The schedule space of a convolution: which tiles the buffers hold, and what they cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import ceil, prod

import numpy as np

from vdla.compiler.codegen.vdla.select import MAX_UOPS
from vdla.compiler.operators.conv2d.sizes import ConvSizes, ConvTile
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
from vdla.compiler.operators.nest import Columns, Knobs, Nest
from vdla.isa.config import Config


def kept_copies(shape: ConvSizes, tile: ConvTile) -> int:
    """Copies of what a tile keeps: one if it never changes, else one per thread."""
    if tile.stationary == "inp":
        windows = -(-shape.out_height // tile.rows) * -(-shape.out_width // tile.cols)
        changes = shape.batch * shape.groups * windows
    else:
        changes = shape.groups * shape.batch * (shape.outputs // tile.outputs)
    return tile.vthreads if changes > 1 else 1


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


def nest(shape: ConvSizes, k: Knobs, config: Config) -> Nest:
    """The loops of many tiles."""
    block, taps = float(config.channel_block), shape.kernel[0] * shape.kernel[1]
    images, chunks = shape.batch * shape.groups, shape.outputs // k["outputs"]
    rows, cols = shape.axis(k, 0), shape.axis(k, 1)
    tiles = images * chunks * rows.tiles * cols.tiles
    steps, parts = shape.inputs // k["inputs"], k["outputs"] // k["weights"]
    trips = {"tile": tiles, "step": tiles * steps, "part": tiles * steps * parts}
    window, pixels = rows.window * cols.window, k["rows"] * k["cols"]
    every = np.ones(len(tiles))
    out = {
        "layer": every * images * shape.outputs * shape.out_height * shape.out_width * block,
        "tile": k["outputs"] * pixels * block,
        "part": k["weights"] * pixels * block,
    }
    touched: dict[str, Columns] = {
        "inp": {
            "layer": every * images * shape.inputs * rows.seen * cols.seen * block,
            "tile": shape.inputs * window * block,
            "step": k["inputs"] * window * block,
        },
        "wgt": {
            "layer": every * shape.groups * shape.outputs * shape.inputs * taps * block * block,
            "tile": k["outputs"] * shape.inputs * taps * block * block,
            "step": k["outputs"] * k["inputs"] * taps * block * block,
            "part": k["weights"] * k["inputs"] * taps * block * block,
        },
        "out": out,
        "bias": {  # with the scales: two int32 per channel
            "layer": every * 8 * shape.groups * shape.outputs * block,
            "tile": 8 * k["outputs"] * block,
        },
    }
    again = np.where(k["stationary"] == "inp", 1, chunks)  # how often the image is loaded
    loads = {
        "inp": trips["step"] / chunks * again,
        "wgt": np.where(k["stationary"] == "wgt", images * chunks * steps * parts, trips["part"]),
    }
    moved = {
        "inp": images * again * shape.inputs * rows.moved * cols.moved * block,
        "wgt": touched["wgt"]["part"] * loads["wgt"],
        "out": out["layer"],
        "bias": np.where(k["resident"], touched["bias"]["layer"], touched["bias"]["tile"] * tiles),
    }
    commands = {
        "inp": loads["inp"] * k["inputs"],
        "wgt": loads["wgt"],
        "gemm": trips["part"],
        "out": tiles * parts,
        "bias": 2 * np.where(k["resident"], 1, tiles),
    }
    if shape.residual is not None:
        touched["residual"], moved["residual"] = out, out["layer"]
        commands["residual"] = tiles * (k["outputs"] + 2)  # loads, and the ALU's two
    macs = images * shape.outputs * shape.out_height * shape.out_width * shape.inputs * taps
    first = k["inputs"] * rows.first * cols.first * block + touched["wgt"]["part"]
    ends = first + k["weights"] * rows.last * cols.last * block
    return Nest(float(macs * block * block), trips, touched, moved, commands, ends)
