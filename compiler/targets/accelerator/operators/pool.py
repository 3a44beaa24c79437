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
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, intrinsics
from vdla.compiler.targets.accelerator.operators.access import accesses
from vdla.compiler.targets.accelerator.operators.cost import (
    CostColumns,
    TileCost,
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


@dataclass(frozen=True)
class PoolTile(Tile):
    """Channel blocks and output pixels of one tile; ``axis`` (c, y, x) is shared by threads."""

    blocks: int
    rows: int
    cols: int
    vthreads: int = 1
    axis: str = "c"


@dataclass(frozen=True)
class Pool2d(Windowed, Template[QPool, PoolTile]):
    """A pool over channel blocks; ``kind`` is "max" or "sum" (of values less ``in_zero``)."""

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
        """An average whose divisor varies, or windows that see nothing of the image."""
        if isinstance(node, ops.QAvgPool) and not node.uniform:
            return "the divisor of the average varies at the edges"
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
            kind, finish = "sum", (node.in_zp, node.out_zp, node.lo, node.hi)
        n, c, h, w = graph.tensors[node.data].shape
        blocks = ceil_div(c, config.channel_block)
        window = node.kernel, node.strides, node.pads, node.dilations
        return cls(kind, n, blocks, h, w, *window, *finish)

    def bind(self, node: QPool, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes."""
        scale = node.scale if isinstance(node, ops.QAvgPool) else 1.0
        constants = {"scale": np.full((1, config.block_out), pack_scale(scale), np.int32)}
        tensors = {"data": node.data, "out": node.output}
        moved = elements(graph, node.data) + elements(graph, node.output)
        return Binding(tensors, constants, 0, moved)

    @property
    def wanted(self) -> str:
        """With its kernel, and its padding where that is too much."""
        return self.named(self.NOUN)

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
        """Blocks of channels and of pixels; the threads share one axis of them."""
        knobs = product(
            sizes(parts(self.out_height), only, "rows"),
            sizes(parts(self.out_width), only, "cols"),
            sizes(divisors(self.blocks), only, "blocks"),
        )
        columns = np.array([(blocks, rows, cols) for rows, cols, blocks in knobs], np.int64)
        columns = columns.reshape(-1, 3)
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
        inside = nest.inside("tile")
        *_, tall, wide, _, _ = nest.spans(inp, inside)
        entries = (nest.held(inp, inside) + nest.held(out, inside)) // lanes * tile.vthreads
        padded = self.paddable(tall, wide, config.channel_block // lanes)
        return np.asarray(padded & (entries + 1 <= config.depth("acc")))

    def cost(self, tile: PoolTile, config: Config) -> CostColumns:
        """One load, one reduction by the ALU and one store per tile."""
        c, counts, nest = config, self._counts(tile), self.nest(tile, config)
        sub = c.channel_block // c.block_out
        inp = nest.tensor("inp")
        *_, tall, wide, _, _ = nest.spans(inp, nest.inside("tile"))
        seen = np.minimum(tall, self.height) * np.minimum(wide, self.width)
        load = tile.blocks * transfer(seen * c.channel_block, wide * c.out_entry, c)
        load = load + tile.blocks * sub * np.maximum(tall * wide - seen, 0)
        vectors = tile.blocks * sub * tile.rows * tile.cols
        store = transfer(vectors * c.out_entry, tile.cols * c.out_entry, c)
        share = shares(self.batch * prod(counts.values()), counts[tile.axis], tile.vthreads)
        return TileCost(*share, 1, 1, load, 0.0, vectors * prod(self.kernel), 0.0, 0.0, store)

    def nest(self, tile: PoolTile, config: Config) -> Nest:
        """Tiles without a reduction."""
        e = _expression(self, config)
        n, c, y, x, *_ = e.out.axis
        loops = [
            Loop("tile", n),
            Loop("tile", c, tile.blocks),
            Loop("tile", y, tile.rows),
            Loop("tile", x, tile.cols),
        ]
        # A STORE takes rows and columns; blocks as well where either needs no loop of its own.
        apart = (tile.rows > 1) & (tile.cols > 1) & (tile.cols < self.out_width)
        stores = np.where(apart, tile.blocks, 1)
        inside = len(loops)
        issues = [
            Issue("inp", inside, 1, e.data),
            Issue("alu", inside),
            Issue("out", inside, stores, e.out),
        ]
        return Nest(e.out, accesses(e.out), loops, issues)

    def _counts(self, tile: PoolTile) -> dict[str, int]:
        """Tiles along each axis."""
        return {
            "c": self.blocks // tile.blocks,
            "y": ceil_div(self.out_height, tile.rows),
            "x": ceil_div(self.out_width, tile.cols),
        }


def _tile(knobs: Iterable[int], vthreads: int) -> PoolTile:
    blocks, rows, cols = knobs
    return PoolTile(blocks, rows, cols, vthreads)


# Expression and schedule -------------------------------------------------------------------------


@dataclass(frozen=True)
class PoolTensors:
    """The tensors of a pool's expression."""

    data: Tensor
    scale: Tensor
    padded: Tensor
    wide: Tensor
    acc: Tensor
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        return [self.data, self.scale]


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
    out = te.compute(
        dims,
        lambda n, c, y, x, s, l: te.requantize(
            acc[n, c, y, x, s, l], scale[0, l], shape.zero, shape.low, shape.high
        ).astype("int8"),
        "out",
    )
    return PoolTensors(data, scale, padded, wide, acc, out)


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
    s[e.out].reorder(n, co, yo, xo, ci, sub, yi, xi, lanes)
    outer[tile.axis], thread = s[e.out].split(outer[tile.axis], factor=tile.vthreads)
    s[e.out].reorder(n, *outer.values(), thread, ci, sub, yi, xi, lanes)
    if tile.vthreads > 1:
        s[e.out].bind(thread, te.thread_axis("vthread"))
    s[e.acc].compute_at(s[e.out], thread)
    s[e.wide].compute_at(s[e.out], thread)
    n, c, y, x, sub, l = s[e.acc].axis
    ky, kx = s[e.acc].reduce_axis
    s[e.acc].reorder(n, c, sub, y, x, ky, kx, l)
    s[e.acc].tensorize(l, ins.alu_max_reduce if shape.kind == "max" else ins.alu_add_reduce)
    padded = any(shape.pads)
    s[e.wide].tensorize(s[e.wide].axis[-1], ins.load_acc8_pad if padded else ins.load_acc8)
    s[e.out].tensorize(lanes, ins.store8)
    return s
