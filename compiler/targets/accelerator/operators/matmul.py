"""Products of two images: the pixels of one are the inputs, those of the other the weights.

A tile of weights is ``block_out`` pixels of an image in channel blocks, as they lie in DRAM. Zero
points cost a sum over the channels of each pixel: a product with ones, too.

    for images, tiles of pixels:
        load a; its sums, times the negative zero point of b              where b has one
        for tiles of result channels, virtual threads interleaved:
            load tiles of b; its sums, times the negative zero point of a where a has one
            acc: from the sums of a; total: with those of b
            out: stored
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.image_matmul import QMatMul, QWideMatMul
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.codegen.nest import MAX_UOPS
from vdla.compiler.targets.accelerator.description import ACC, INP, WGT, Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.description.engines import alu_beside_gemm
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TURN,
    group_cycles,
    parts,
    requantized,
    sizes,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Array,
    Binding,
    Tile,
    elements,
    one_scale,
    unlike_blocks,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Var
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div, divisors


@dataclass(frozen=True)
class MatMulTile(Tile):
    """A tile is ``cols`` pixels of ``outputs`` channel blocks of the result."""

    outputs: int
    cols: int
    vthreads: int = 1


@dataclass(frozen=True)
class MatMulTensors:
    """The tensors of a product's expression; ``rows`` and ``columns`` are the sums that zero points
    are multiplied with, in steps, the last one first."""

    a: Tensor
    b: Tensor
    tiles: Tensor
    acc: Tensor
    out: Tensor
    scale: Tensor | None = None
    ones: Tensor | None = None
    one: Tensor | None = None
    rows: tuple[Tensor, ...] = ()
    columns: tuple[Tensor, ...] = ()
    total: Tensor | None = None

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        optional = (self.scale, self.ones, self.one)
        return [self.a, self.b, *(t for t in optional if t is not None)]


@dataclass(frozen=True)
class MatMul(Held[QMatMul | QWideMatMul, MatMulTile]):
    """``out[n, o, m] = clip(rq(Σ_c (a[n, c, m] - a_zero) (b[n, c, o] - b_zero), scale) + zero, low,
    high)``; ``inputs`` counts blocks of ``channels``. ``wide``: the sums themselves, as int32."""

    NAME = "matmul"
    TILE = MatMulTile
    NOUN = "product of two images"
    NODES = (QMatMul, QWideMatMul)
    NUMBERS: ClassVar[Mapping[str, object]] = {"zero": 0, "low": 0, "high": 0}
    ZEROS = ("a_zero", "b_zero")

    batch: int
    channels: int
    inputs: int
    pixels: int
    outputs: int
    a_zero: int
    b_zero: int
    zero: int
    low: int
    high: int
    wide: bool = False

    @classmethod
    def refusal(
        cls, node: QMatMul | QWideMatMul, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Blocks must be tiles of weights, and the lanes of a block channels, or zeros."""
        channels, block = graph.tensors[node.a].shape[1], config.channel_block
        if channels % block:
            makers = graph.producers
            if any(type(makers.get(name)) is not QTransposeImage for name in (node.a, node.b)):
                return f"{channels} channels don't end with a block of {block}"
        return unlike_blocks(config)

    @classmethod
    def of(cls, node: QMatMul | QWideMatMul, graph: Graph, config: Config) -> MatMul:
        """The template of a product, with its zero points and limits; its scale is a constant."""
        (n, channels, _, pixels), outputs = graph.tensors[node.a].shape, graph.tensors[node.b].shape
        inputs = ceil_div(channels, config.channel_block)
        sizes = n, channels, inputs, pixels, outputs[3]
        if isinstance(node, QWideMatMul):
            return cls(*sizes, 0, 0, 0, 0, 0, wide=True)
        (a_zero, b_zero), (zero, low, high) = node.zeros, node.requant.limits
        return cls(*sizes, a_zero, b_zero, zero, low, high)

    def bind(self, node: QMatMul | QWideMatMul, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes, and ones for the sums."""
        block = config.channel_block
        constants: dict[str, Array] = {}
        if isinstance(node, QMatMul):
            constants["scale"] = one_scale(node.requant.scale[0], config)
        if self.b_zero:
            constants["ones"] = np.ones((1, block, block), np.int8)
        if self.a_zero:
            constants["one"] = np.ones((1, block), np.int8)
        tensors = {"a": node.a, "b": node.b, "out": node.output}
        moved = sum(elements(graph, name) for name in tensors.values())
        moved += 3 * elements(graph, node.output) * self.wide
        macs = self.batch * self.channels * self.pixels * self.outputs
        return Binding(tensors, constants, macs, moved)

    @property
    def wanted(self) -> str:
        """With how much is summed."""
        return f"a {self.NOUN} of {self.channels} channels"

    def schedule(self, tile: MatMulTile, config: Config) -> Schedule:
        """Tiled, every stage tensorized."""
        return schedule(expression(self, config), self, tile, config)

    def sizes(
        self, config: Config, vthreads: int, only: MatMulTile | None = None
    ) -> Iterator[MatMulTile]:
        """Portions of the result's channels and pixels, in one sequence of micro-ops each."""
        if self.inputs > min(MAX_UOPS, config.uop_depth):
            return
        every = ceil_div(self.outputs, config.channel_block)
        blocks = sizes(divisors(every), only, "outputs")
        for outputs, cols in product(blocks, sizes(parts(self.pixels), only, "cols")):
            if every == 1 or every // outputs >= vthreads:
                yield MatMulTile(outputs, cols, vthreads)

    def ranking(self, tiles: Sequence[MatMulTile], config: Config) -> Sequence[int]:
        """By :meth:`cycles`."""
        return sorted(range(len(tiles)), key=lambda place: self.cycles(tiles[place], config))

    def cycles(self, tile: MatMulTile, config: Config) -> float:
        """The busiest engine's cycles, or the bus's, and what a tile waits for at its start."""
        s, c, blocks = self, config, ceil_div(self.outputs, config.channel_block)
        downs, acrosses = blocks // tile.outputs, ceil_div(s.pixels, tile.cols)
        tiles, vectors = s.batch * downs * acrosses, s.batch * blocks * s.pixels
        sums = s.batch * s.pixels * (s.b_zero != 0) + s.batch * blocks * (s.a_zero != 0)
        gemm = (vectors + sums) * s.inputs
        alu = 2 * sums + vectors * (s.a_zero != 0) + float(group_cycles(sums, c))
        data = s.batch * s.pixels * s.inputs * c.inp_entry
        weights = s.batch * blocks * acrosses * s.inputs * c.wgt_entry
        stored = c.acc_entry if s.wide else c.out_entry
        store = vectors * stored / c.bytes_per_cycle if s.wide else requantized(vectors * stored, c)
        bus = (data + weights + vectors * stored) / c.bytes_per_cycle
        compute = max(gemm, alu) if alu_beside_gemm(c) else gemm + alu
        latency = c.memory.first_beat + TURN
        if tile.vthreads == 1:
            return compute + store + bus + tiles * latency
        first = (tile.cols * s.inputs * c.inp_entry) / c.bytes_per_cycle + latency
        last = store * tile.outputs * tile.cols / vectors
        return max(compute, store, bus) + first + last + tiles * STARTUP


# The expression and its schedule ----------------------------------------------------------------


def expression(shape: MatMul, config: Config) -> MatMulTensors:
    """The expression of a product."""
    s, lanes = shape, config.channel_block
    blocks = ceil_div(s.outputs, lanes)
    a = te.placeholder((s.batch, s.inputs, s.pixels, lanes), "int8", "a")
    # Rows of b by image and channel block; the last tile of each ends behind its rows.
    b = te.placeholder((s.batch * s.inputs * s.outputs + -s.outputs % lanes, lanes), "int8", "b")
    scale = None if s.wide else te.placeholder((1, lanes), "int32", "scale")
    tiles = te.compute(
        (s.batch, s.inputs, blocks, lanes, lanes),
        lambda n, c, o, l, i: b[(n * s.inputs + c) * s.outputs + o * lanes + l, i],
        "tiles",
    )
    rows, ones = _sums_of_rows(s, a, lanes) if s.b_zero else ((), None)
    columns, one = _sums_of_columns(s, tiles) if s.a_zero else ((), None)
    c, i = te.reduce_axis((0, s.inputs), "c"), te.reduce_axis((0, lanes), "i")

    def reduce(n: Expr, o: Expr, m: Expr, l: Expr) -> Expr:
        product = a[n, c, m, i].astype("int32") * tiles[n, c, o, l, i].astype("int32")
        start = rows[0][n, m, l] if rows else te.const(0)
        return te.sum(product, axis=[c, i], init=start)

    results = (s.batch, blocks, s.pixels, lanes)
    acc = te.compute(results, reduce, "acc")
    total = None
    if columns:
        total = te.compute(
            results, lambda n, o, m, l: acc[n, o, m, l] + columns[0][n, o, l], "total"
        )
    last = acc if total is None else total

    def stored(*at: Expr) -> Expr:
        if scale is None:
            return last[at]
        return te.requantize(last[at], scale[0, at[-1]], s.zero, s.low, s.high).astype("int8")

    out = te.compute(results, stored, "out")
    return MatMulTensors(a, b, tiles, acc, out, scale, ones, one, rows, columns, total)


def _sums_of_rows(s: MatMul, a: Tensor, lanes: int) -> tuple[tuple[Tensor, ...], Tensor]:
    """The sum of each pixel's channels of ``a`` in all lanes, times -b_zero; and the ones."""
    ones = te.placeholder((1, lanes, lanes), "int8", "ones")
    c, i = te.reduce_axis((0, s.inputs), "c"), te.reduce_axis((0, lanes), "i")
    sums = te.compute(
        (s.batch, s.pixels, lanes),
        lambda n, m, l: te.sum(
            a[n, c, m, i].astype("int32") * ones[0, l, i].astype("int32"), axis=[c, i]
        ),
        "row_sums",
    )
    scaled = te.compute(sums.shape, lambda *at: sums[at] * te.const(-s.b_zero), "rows")
    return (scaled, sums), ones


def _sums_of_columns(s: MatMul, tiles: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """The sum of each pixel's channels of ``b``, times -a_zero, plus what is constant; and ones."""
    batch, inputs, blocks, lanes, _ = tiles.shape
    one = te.placeholder((1, lanes), "int8", "one")
    c, i = te.reduce_axis((0, inputs), "c"), te.reduce_axis((0, lanes), "i")
    sums = te.compute(
        (batch, blocks, lanes),
        lambda n, o, l: te.sum(
            one[0, i].astype("int32") * tiles[n, c, o, l, i].astype("int32"), axis=[c, i]
        ),
        "column_sums",
    )
    scaled = te.compute(sums.shape, lambda *at: sums[at] * te.const(-s.a_zero), "scaled_columns")
    if not s.b_zero:
        return (scaled, sums), one
    constant = te.const(s.channels * s.a_zero * s.b_zero)
    return (te.compute(sums.shape, lambda *at: scaled[at] + constant, "columns"), scaled, sums), one


def schedule(e: MatMulTensors, shape: MatMul, tile: MatMulTile, config: Config) -> Schedule:
    """Tiles the result, places loads and sums, tensorizes every stage."""
    ins = intrinsics(config)
    s = create_schedule(e.out, e.inputs, "matmul")
    for stage in (e.acc, e.total, *e.rows, *e.columns):
        if stage is not None:
            s[stage].set_scope(ACC)
    s[e.tiles].set_scope(WGT)
    inp = s.cache_read(e.a, INP, [e.acc, *e.rows[-1:]])
    if e.scale is not None:
        scale = s.cache_read(e.scale, ACC, [e.out])
        s[scale].tensorize(s[scale].axis[-1], ins.load_acc)
    n, o, m, lanes = s[e.out].axis
    oo, oi = s[e.out].split(o, factor=tile.outputs)
    mo, mi = s[e.out].split(m, factor=tile.cols)
    s[e.out].reorder(n, mo, oo, oi, mi, lanes)
    if tile.vthreads > 1:
        dealt = oo if shape.outputs > config.channel_block else mo
        s[e.out].bind(dealt, te.thread_axis("vthread", threads=tile.vthreads))
    _place_products(s, e, oo, ins)
    if shape.outputs % config.channel_block:
        s[e.tiles].unroll(s[e.tiles].axis[1])  # its blocks begin anywhere: a LOAD for each
    _place_rows(s, e, mo, ins)
    s[inp].compute_at(s[e.out], mo)
    if tile.vthreads > 1:
        s[inp].double_buffer(2)
        s[e.tiles].double_buffer(2)
    s[inp].tensorize(s[inp].axis[-1], ins.load_inp)
    s[e.out].tensorize(lanes, ins.store32 if shape.wide else ins.store8)
    return s


def _place_products(s: Schedule, e: MatMulTensors, tile: Var, ins: Intrinsics) -> None:
    """Computes the products of a tile, with the sums of its weights, and loads these."""
    if e.total is not None:
        s[e.total].compute_at(s[e.out], tile)
        s[e.total].tensorize(s[e.total].axis[-1], ins.alu_add)
    s[e.acc].compute_at(s[e.out], tile)
    around, (c, i) = s[e.acc].axis, s[e.acc].reduce_axis
    s[e.acc].reorder(*around[:-1], c, around[-1], i)
    s[e.acc].tensorize(around[-1], ins.gemm if e.rows else ins.gemm_zero)
    if e.one is not None:
        one = s.cache_read(e.one, INP, [e.columns[-1]])
        steps = (ins.alu_add_imm, ins.alu_mul_imm)[-len(e.columns) + 1 :]
        _place_sums(s, e, tile, e.columns, (*steps, ins.gemm_zero))
        s[one].tensorize(s[one].axis[-1], ins.load_inp)
    s[e.tiles].compute_at(s[e.out], tile)
    s[e.tiles].tensorize(s[e.tiles].axis[-2], ins.load_wgt)


def _place_rows(s: Schedule, e: MatMulTensors, tile: Var, ins: Intrinsics) -> None:
    """Computes the sums of the pixels of a tile."""
    if e.ones is not None:
        ones = s.cache_read(e.ones, WGT, [e.rows[-1]])
        _place_sums(s, e, tile, e.rows, (ins.alu_mul_imm, ins.gemm_zero))
        s[ones].tensorize(s[ones].axis[-2], ins.load_wgt)


def _place_sums(
    s: Schedule,
    e: MatMulTensors,
    tile: Var,
    stages: Sequence[Tensor],
    intrins: Sequence[TensorIntrin],
) -> None:
    """Computes sums and what they are multiplied and increased by, the last stage first."""
    for stage, intrin in zip(stages, intrins, strict=True):
        s[stage].compute_at(s[e.out], tile)
        *around, lanes = s[stage].axis
        if stage.compute_op.reduce is not None:
            c, i = s[stage].reduce_axis
            s[stage].reorder(*around, c, lanes, i)
        s[stage].tensorize(lanes, intrin)
