"""Max and average pooling: bytes widened on the way in, reduced by the ALU, requantized out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from vdla.compiler import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.pool import MOST_MULTIPLE
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, intrinsics
from vdla.compiler.targets.accelerator.description.engines import alu_beside_gemm
from vdla.compiler.targets.accelerator.operators.access import Size, accesses
from vdla.compiler.targets.accelerator.operators.cost import (
    TileCost,
    group_cycles,
    pace,
    parts,
    shares,
    sizes,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.nest import Issue, Loop, Nest
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Binding,
    Template,
    Tile,
    elements,
)
from vdla.compiler.targets.accelerator.operators.window import Windowed, only_padding
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.config import Config
from vdla.isa.numbers import pack_scale
from vdla.support.numbers import ceil_div, divisors

QPool = ops.QMaxPool | ops.QAvgPool
FACTORS = (1, MOST_MULTIPLE)


@dataclass(frozen=True)
class PoolTile(Tile):
    """Channel blocks and output pixels of one tile; ``axis`` (c, y, x) is shared by threads.

    ``taps`` are the rows of the window that a step of the reduction loads; 0 stands for all.
    """

    blocks: int
    rows: int
    cols: int
    vthreads: int = 1
    axis: str = "c"
    taps: int = 0


@dataclass(frozen=True)
class Pool2d(Windowed, Template[QPool, PoolTile]):
    """A pool over channel blocks.

    ``kind`` is "max", "sum" (of values less ``in_zero``) or, where the divisor of an average
    varies, "mean": sums that are multiplied by a factor of their place.
    """

    NAME = "pool"
    TILE = PoolTile
    NOUN = "pool"
    NODES = (ops.QMaxPool, ops.QAvgPool)
    NUMBERS: ClassVar[Mapping[str, object]] = {"in_zero": 0, "zero": 0, "low": 0, "high": 0}

    kind: str
    batch: int
    blocks: int
    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    in_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def refusal(
        cls, node: QPool, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Windows that see nothing of the image."""
        return only_padding(node, graph)

    @classmethod
    def placed(cls, node: QPool) -> str:
        """``max pool on int8`` or ``average pool on int8``, for the placement report."""
        return f"{'max' if isinstance(node, ops.QMaxPool) else 'average'} pool on int8"

    @classmethod
    def of(cls, node: QPool, graph: Graph, config: Config) -> Pool2d:
        """The template of a pool; an average is a sum that the requantization divides."""
        if isinstance(node, ops.QMaxPool):
            kind, finish = "max", (0, 0, -128, 127)
        else:
            varies = (node.factors(graph.tensors[node.data].shape) > 1).any()
            kind = "mean" if varies else "sum"
            finish = (node.zeros[0], *node.requant.limits)
        n, c, h, w = graph.tensors[node.data].shape
        blocks = ceil_div(c, config.channel_block)
        window = node.kernel, node.strides, node.pads, node.dilations
        return cls(kind, n, blocks, h, w, *window, *finish)

    def bind(self, node: QPool, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes, and where the divisor varies a factor for each place."""
        shape, lanes = graph.tensors[node.data].shape, config.block_out
        scale = node.requant.scale[0] if isinstance(node, ops.QAvgPool) else 1.0
        constants = {"scale": np.full((1, lanes), pack_scale(scale), np.int32)}
        if self.weighted and isinstance(node, ops.QAvgPool):
            factors = node.factors(shape).astype(np.int32)
            constants["factor"] = np.repeat(factors[..., None], lanes, axis=-1)
        tensors = {"data": node.data, "out": node.output}
        moved = elements(graph, node.data) + elements(graph, node.output)
        return Binding(tensors, constants, 0, moved)

    @property
    def wanted(self) -> str:
        """With its kernel, and its padding where that is too much."""
        return self.named(self.NOUN)

    @property
    def weighted(self) -> bool:
        """Whether each sum has a factor of its own."""
        return self.kind == "mean"

    @property
    def pad_value(self) -> int:
        """The padding value: the identity of the reduction."""
        return -128 if self.kind == "max" else self.in_zero

    def schedule(self, tile: PoolTile, config: Config) -> Schedule:
        """Tiled by ``tile``, every stage tensorized."""
        return _schedule(_expression(self, config), self, tile, config)

    def tiles(
        self, config: Config, vthreads: int, only: PoolTile | None = None
    ) -> Iterator[PoolTile]:
        """Blocks of channels and of pixels; the threads share one axis of them.

        Where no whole window fits, it is cut into steps of some rows.
        """
        smallest = np.array([(1, 1, 1, 0)], np.int64)
        whole = bool(self._fits(_tile(smallest.T, vthreads), config)[0])
        steps = [0] if whole else parts(self.kernel[0])[:-1]
        knobs = product(
            sizes(parts(self.out_height) if whole else [1], only, "rows"),
            sizes(parts(self.out_width), only, "cols"),
            sizes(divisors(self.blocks), only, "blocks"),
            sizes(steps, only, "taps"),
        )
        columns = np.array(
            [(blocks, rows, cols, taps) for rows, cols, blocks, taps in knobs], np.int64
        ).reshape(-1, 4)
        fits = self._fits(_tile(columns.T, vthreads), config)
        for each in columns[fits].tolist():
            tile = _tile(each, vthreads)
            counts = self._counts(tile)
            for axis in ("c", "y", "x") if vthreads > 1 else ("c",):
                if counts[axis] >= vthreads:
                    yield replace(tile, axis=axis)

    def _fits(self, tile: PoolTile, config: Config) -> NDArray[np.bool_]:
        """Whether ACC holds all threads' windows and results, and one LOAD pads."""
        nest, lanes = self.nest(tile, config), config.block_out
        inp, out = (nest.tensor(r) for r in ("inp", "out"))
        inside = nest.inside("step")
        *_, tall, wide, _, _ = nest.spans(inp, inside)
        in_tile = [out, nest.tensor("bias")] if self.weighted else [out]
        held = nest.held(inp, inside) + sum(nest.held(t, nest.inside("tile")) for t in in_tile)
        entries = held // lanes * tile.vthreads
        padded = self.paddable(tall, wide, config.channel_block // lanes)
        return np.asarray(padded & (entries + 1 <= config.depth("acc")))

    def cost(self, tile: PoolTile, config: Config) -> TileCost:
        """A load and a reduction by the ALU in each step, and one store per tile."""
        c, counts, nest = config, self._counts(tile), self.nest(tile, config)
        sub = c.channel_block // c.block_out
        inp, steps = nest.tensor("inp"), -(-self.kernel[0] // self._taps(tile))
        *_, tall, wide, _, _ = nest.spans(inp, nest.inside("step"))
        seen = np.minimum(tall, self.height) * np.minimum(wide, self.width)
        load = tile.blocks * transfer(seen * c.channel_block, wide * c.out_entry, c)
        load = load + tile.blocks * sub * np.maximum(tall * wide - seen, 0)
        vectors = tile.blocks * sub * tile.rows * tile.cols
        store = transfer(vectors * c.out_entry, tile.cols * c.out_entry, c)
        share = shares(self.batch * prod(counts.values()), counts[tile.axis], tile.vthreads)
        work = vectors * prod(self.kernel) / steps
        side: Size = 0.0
        alu: Size = 0.0
        if self.weighted:
            side = transfer(tile.rows * tile.cols * c.acc_entry, tile.cols * c.acc_entry, c)
            alu = vectors + group_cycles(vectors, c)
        return TileCost(
            *share, steps=steps, inp=load, gemm=work, side=side, alu=alu, store=store, pace=pace(c)
        )

    def nest(self, tile: PoolTile, config: Config) -> Nest:
        """Tiles whose windows are seen in steps of some rows."""
        e = _expression(self, config)
        n, c, y, x, *_ = e.out.axis
        loops = [
            Loop("tile", n),
            Loop("tile", c, tile.blocks),
            Loop("tile", y, tile.rows),
            Loop("tile", x, tile.cols),
            Loop("step", e.acc.compute_op.reduce_axis[0], self._taps(tile)),
        ]
        # A STORE takes rows and columns; blocks as well where either needs no loop of its own.
        apart = (tile.rows > 1) & (tile.cols > 1) & (tile.cols < self.out_width)
        stores = np.where(apart, tile.blocks, 1)
        inside = len(loops)
        issues = [
            Issue("inp", inside, 1, e.data),
            Issue("alu", inside),
            Issue("out", inside - 1, stores, e.out),
        ]
        if e.factor is not None:
            issues.append(Issue("bias", inside - 1, 1, e.factor))
        return Nest(e.out, accesses(e.out), loops, issues)

    def _taps(self, tile: PoolTile) -> NDArray[np.int64]:
        """Rows of the window that a step sees; a number, or one for each of many tiles."""
        return np.where(np.equal(tile.taps, 0), self.kernel[0], tile.taps)

    def _counts(self, tile: PoolTile) -> dict[str, int]:
        """Tiles along each axis."""
        return {
            "c": self.blocks // tile.blocks,
            "y": ceil_div(self.out_height, tile.rows),
            "x": ceil_div(self.out_width, tile.cols),
        }


def _tile(knobs: Iterable[int], vthreads: int) -> PoolTile:
    blocks, rows, cols, taps = knobs
    return PoolTile(blocks, rows, cols, vthreads, taps=taps)


# Expression and schedule -------------------------------------------------------------------------


@dataclass(frozen=True)
class PoolTensors:
    """The tensors of a pool's expression."""

    data: Tensor
    scale: Tensor
    factor: Tensor | None
    padded: Tensor
    wide: Tensor
    acc: Tensor
    weighted: Tensor
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        return [self.data, self.scale, *([] if self.factor is None else [self.factor])]


def _expression(shape: Pool2d, config: Config) -> PoolTensors:
    """The expression of a pool."""
    lanes, sub = config.block_out, config.channel_block // config.block_out
    top, left, bottom, right = shape.pads
    h, w = shape.height, shape.width
    data = te.placeholder((shape.batch, shape.blocks, h, w, sub, lanes), "int8", "data")
    scale = te.placeholder((1, lanes), "int32", "scale")
    padded_shape = (shape.batch, shape.blocks, h + top + bottom, w + left + right, sub, lanes)

    def pad(n: Expr, c: Expr, y: Expr, x: Expr, s: Expr, l: Expr) -> Expr:
        if not any(shape.pads):
            return data[n, c, y, x, s, l]
        inside = te.all(y >= top, y < h + top, x >= left, x < w + left)
        outside = te.const(shape.pad_value, "int8")
        return te.if_then_else(inside, data[n, c, y - top, x - left, s, l], outside)

    padded = te.compute(padded_shape, pad, "padded")
    offset = 0 if shape.kind == "max" else shape.in_zero
    wide = te.compute(padded_shape, lambda *i: padded[i].astype("int32") - te.const(offset), "wide")
    ky = te.reduce_axis((0, shape.kernel[0]), "ky")
    kx = te.reduce_axis((0, shape.kernel[1]), "kx")
    (sy, sx), (dy, dx) = shape.strides, shape.dilations
    combine = te.max if shape.kind == "max" else te.sum
    dims = (shape.batch, shape.blocks, shape.out_height, shape.out_width, sub, lanes)
    acc = te.compute(
        dims,
        lambda n, c, y, x, s, l: combine(
            wide[n, c, y * sy + ky * dy, x * sx + kx * dx, s, l], axis=[ky, kx]
        ),
        "acc",
    )
    factor, weighted = None, acc
    if shape.weighted:
        factor = te.placeholder((*dims[2:4], lanes), "int32", "factor", value_range=FACTORS)
        table = factor
        weighted = te.compute(
            dims, lambda n, c, y, x, s, l: acc[n, c, y, x, s, l] * table[y, x, l], "weighted"
        )
    out = te.compute(
        dims,
        lambda n, c, y, x, s, l: te.requantize(
            weighted[n, c, y, x, s, l], scale[0, l], shape.zero, shape.low, shape.high
        ).astype("int8"),
        "out",
    )
    return PoolTensors(data, scale, factor, padded, wide, acc, weighted, out)


def _schedule(expression: PoolTensors, shape: Pool2d, tile: PoolTile, config: Config) -> Schedule:
    """Tiles the output and tensorizes every stage."""
    ins, e = intrinsics(config), expression
    s = create_schedule(e.out, e.inputs, "pool")
    scale = s.cache_read(e.scale, ACC, [e.out])
    s[scale].tensorize(s[scale].axis[-1], ins.load_acc)
    s[e.wide].set_scope(ACC)
    s[e.acc].set_scope(ACC)
    s[e.padded].compute_inline()
    n, c, y, x, sub, lanes = s[e.out].axis
    co, ci = s[e.out].split(c, factor=tile.blocks)
    yo, yi = s[e.out].split(y, factor=tile.rows)
    xo, xi = s[e.out].split(x, factor=tile.cols)
    outer = {"c": co, "y": yo, "x": xo}
    if alu_beside_gemm(config):  # the convolution beside it has rows ready, top to bottom
        outer = {"y": yo, "x": xo, "c": co}
    s[e.out].reorder(n, *outer.values(), ci, sub, yi, xi, lanes)
    outer[tile.axis], thread = s[e.out].split(outer[tile.axis], factor=tile.vthreads)
    s[e.out].reorder(n, *outer.values(), thread, ci, sub, yi, xi, lanes)
    if tile.vthreads > 1:
        s[e.out].bind(thread, te.thread_axis("vthread"))
    if e.factor is not None:
        held = s.cache_read(e.factor, ACC, [e.weighted])
        s[e.weighted].set_scope(ACC)
        s[e.weighted].compute_at(s[e.out], thread)
        s[e.weighted].tensorize(s[e.weighted].axis[-1], ins.alu_mul)
        s[held].compute_at(s[e.out], thread)
        s[held].tensorize(s[held].axis[-1], ins.load_acc)
    s[e.acc].compute_at(s[e.out], thread)
    n, c, y, x, sub, l = s[e.acc].axis
    ky, kx = s[e.acc].reduce_axis
    if tile.taps:
        step, ky = s[e.acc].split(ky, factor=tile.taps)
        s[e.acc].reorder(step, n, c, sub, y, x, ky, kx, l)
        s[e.wide].compute_at(s[e.acc], step)
    else:
        s[e.acc].reorder(n, c, sub, y, x, ky, kx, l)
        s[e.wide].compute_at(s[e.out], thread)
    s[e.acc].tensorize(l, ins.alu_max_reduce if shape.kind == "max" else ins.alu_add_reduce)
    padded = any(shape.pads)
    s[e.wide].tensorize(s[e.wide].axis[-1], ins.load_acc8_pad if padded else ins.load_acc8)
    s[e.out].tensorize(lanes, ins.store8)
    return s
