"""Batch normalization: a factor and an offset for each channel, by the ALU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import pack_scales
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, intrinsics
from vdla.compiler.targets.accelerator.operators.cost import (
    TileCost,
    group_cycles,
    pace,
    parts,
    shares,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    Tile,
    elements,
    without_blocks,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div, divisors

MOST_FACTOR = 1 << 21
ROWS = 3  # of constants per vector: factor, offset, scale


@dataclass(frozen=True)
class NormTile(Tile):
    """Channel blocks of one tile, or where that is one, its pixels; dealt to the threads."""

    blocks: int
    pixels: int
    vthreads: int = 1


@dataclass(frozen=True)
class NormTensors:
    """The tensors of the expression."""

    data: Tensor
    constants: list[Tensor]
    wide: Tensor
    scaled: Tensor
    moved: Tensor
    out: Tensor


@dataclass(frozen=True)
class BatchNorm(Held[ops.QBatchNorm, NormTile]):
    """``out = clip(rq((data - in_zero)·factor[c] + offset[c], scale[c]) + zero, low, high)``.

    ``pixels`` of ``vectors`` vectors each in every one of ``blocks`` channel blocks.
    """

    NAME = "batch_norm"
    TILE = NormTile
    NOUN = "batch normalization"
    NODES = (ops.QBatchNorm,)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(("in_zero", "zero", "low", "high"), 0)

    batch: int
    blocks: int
    pixels: int
    vectors: int
    in_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def refusal(
        cls, node: ops.QBatchNorm, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only images and vectors have channel blocks."""
        return without_blocks(node, graph)

    @classmethod
    def of(cls, node: ops.QBatchNorm, graph: Graph, config: Config) -> BatchNorm:
        """The template of a node; factors, offsets and scales are constants."""
        n, c, *image = graph.tensors[node.output].shape
        blocks, vectors = (
            ceil_div(c, config.channel_block),
            config.channel_block // config.block_out,
        )
        return cls(n, blocks, prod(image), vectors, node.zeros[0], *node.requant.limits)

    def bind(self, node: ops.QBatchNorm, graph: Graph, config: Config) -> Binding:
        """A vector of each constant for every vector of channels; padded channels have zeros."""
        factor, offset, _ = node.terms
        values = {"factor": factor, "offset": offset, "scale": pack_scales(node.shifts)}
        constants = {name: self._by_vectors(value, config) for name, value in values.items()}
        tensors = {"data": node.data, "out": node.output}
        return Binding(tensors, constants, 0, 2 * elements(graph, node.output))

    def _by_vectors(self, values: Array, config: Config) -> Array:
        full = np.zeros(self.blocks * config.channel_block, np.int32)
        full[: len(values)] = values
        return full.reshape(self.blocks, self.vectors, config.block_out)

    def sizes(
        self, config: Config, vthreads: int, only: NormTile | None = None
    ) -> Iterator[NormTile]:
        """Several blocks of all pixels, or a part of one block's."""
        several = [(blocks, self.pixels) for blocks in divisors(self.blocks)]
        cut = [(1, pixels) for pixels in parts(self.pixels)[:-1]]
        for blocks, pixels in [*several, *cut]:
            whole = pixels == self.pixels
            count = self.blocks // blocks if whole else ceil_div(self.pixels, pixels)
            if count >= vthreads:
                yield NormTile(blocks, pixels, vthreads)

    def cost(self, tile: NormTile, config: Config) -> TileCost:
        """A load of the data and of the constants, two operations of the ALU and a store."""
        vectors = tile.blocks * tile.pixels * self.vectors
        move = transfer(vectors * config.out_entry, tile.pixels * config.out_entry, config)
        alu = 2 * vectors + group_cycles(vectors, config)
        rows = tile.blocks * self.vectors * config.block_out * 4
        side = ROWS * transfer(rows, rows, config)
        tiles = self.batch * (self.blocks // tile.blocks) * ceil_div(self.pixels, tile.pixels)
        share = shares(tiles, tiles, tile.vthreads)
        cost = TileCost(*share, inp=move, side=side, alu=alu, store=move, shared=False)
        return replace(cost, pace=pace(config))

    def _expression(self, config: Config) -> NormTensors:
        lanes = config.block_out
        data = te.placeholder(
            (self.batch, self.blocks, self.pixels, self.vectors, lanes), "int8", "data"
        )
        per_channel = (self.blocks, self.vectors, lanes)
        factor = te.placeholder(
            per_channel, "int32", "factor", value_range=(-MOST_FACTOR, MOST_FACTOR)
        )
        offset = te.placeholder(per_channel, "int32", "offset")
        scale = te.placeholder(per_channel, "int32", "scale")
        wide = widened(data, self.in_zero, "wide")

        def product(n: Expr, c: Expr, p: Expr, s: Expr, l: Expr) -> Expr:
            return wide[n, c, p, s, l] * factor[c, s, l]

        def total(n: Expr, c: Expr, p: Expr, s: Expr, l: Expr) -> Expr:
            return scaled[n, c, p, s, l] + offset[c, s, l]

        def value(n: Expr, c: Expr, p: Expr, s: Expr, l: Expr) -> Expr:
            limits = self.zero, self.low, self.high
            return te.requantize(moved[n, c, p, s, l], scale[c, s, l], *limits).astype("int8")

        scaled = te.compute(data.shape, product, "scaled")
        moved = te.compute(data.shape, total, "moved")
        out = te.compute(data.shape, value, "out")
        return NormTensors(data, [factor, offset, scale], wide, scaled, moved, out)

    def schedule(self, tile: NormTile, config: Config) -> Schedule:
        """Tiles of blocks or of pixels, with their own constants."""
        ins, e = intrinsics(config), self._expression(config)
        s = create_schedule(e.out, [e.data, *e.constants], self.NAME)
        readers = [e.scaled, e.moved, e.out]
        held = [s.cache_read(t, ACC, [r]) for t, r in zip(e.constants, readers, strict=True)]
        n, c, p, v, lanes = s[e.out].axis
        outer, inner = s[e.out].split(c, factor=tile.blocks)
        chunk, pixels = s[e.out].split(p, factor=tile.pixels)
        s[e.out].reorder(n, outer, chunk, inner, pixels, v, lanes)
        dealt = outer if tile.pixels == self.pixels else chunk
        dealt, thread = s[e.out].split(dealt, factor=tile.vthreads)
        if tile.vthreads > 1:
            s[e.out].bind(thread, te.thread_axis("vthread"))
        steps = [
            (e.moved, ins.alu_add), (e.scaled, ins.alu_mul), (e.wide, ins.load_acc8),
            *((constant, ins.load_acc) for constant in held),
        ]  # fmt: skip
        for step, _ in steps:
            if step not in held:
                s[step].set_scope(ACC)
        for step, intrin in steps:
            s[step].compute_at(s[e.out], thread)
            s[step].tensorize(s[step].axis[-1], intrin)
        s[e.out].tensorize(lanes, ins.store8)
        return s
