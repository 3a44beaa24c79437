"""Softmax over pixels: lanes are channels, so maxima and sums are those of whole vectors.

for rows of channels, virtual threads interleaved:
    load; top: the largest; differences, looked up; total: their sum
    the reciprocal of the total is the row's scale when STORE requantizes the exponentials
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TileCost,
    group_cycles,
    pace,
    parts,
    shares,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.stages import place, softmax_stages
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Binding,
    Tile,
    elements,
)
from vdla.compiler.targets.accelerator.options.reciprocals import no_reciprocals
from vdla.compiler.targets.accelerator.options.tables import TAB, no_tables
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.options.tables import TABLE_RESULTS
from vdla.support.numbers import ceil_div

STEPS = 4  # operations of the ALU for each vector, of which one multiplies
SMALL = 4  # and for each row, of which one multiplies


@dataclass(frozen=True)
class SoftmaxTile(Tile):
    """Rows of one tile: channel blocks of an image, whole."""

    rows: int
    vthreads: int = 1


@dataclass(frozen=True)
class SoftmaxTensors:
    """The tensors of the expression, and what ACC holds of them with its instructions, the last
    one first."""

    data: Tensor
    table: Tensor
    steps: list[tuple[Tensor, TensorIntrin]]
    out: Tensor


@dataclass(frozen=True)
class Softmax(Held[QSoftmax, SoftmaxTile]):
    """``rows`` channel blocks of all images, each of so many ``pixels`` of ``vectors`` vectors.

    ``factor`` and ``shift`` are those of the node's sums.
    """

    NAME = "softmax"
    TILE = SoftmaxTile
    NOUN = "softmax"
    NODES = (QSoftmax,)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(
        ("factor", "shift", "zero", "low", "high"), 0
    )

    rows: int
    pixels: int
    vectors: int
    factor: int
    shift: int
    zero: int
    low: int
    high: int

    @classmethod
    def refusal(
        cls, node: QSoftmax, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """A config may lack tables or reciprocals, or room for a row."""
        if lack := no_tables(config, "exponentials"):
            return lack
        if lack := no_reciprocals(config):
            return lack
        softmax = cls.of(node, graph, config)
        if not softmax.has_room(config):
            return (
                f"a row of {softmax.pixels} pixels exceeds the {config.depth('acc')} vectors of acc"
            )
        return None

    @classmethod
    def of(cls, node: QSoftmax, graph: Graph, config: Config) -> Softmax:
        """The template of a softmax; its table is a constant."""
        n, channels, _, pixels = graph.tensors[node.data].shape
        vectors = config.channel_block // config.block_out
        rows = n * ceil_div(channels, config.channel_block)
        limits = node.requant.limits
        return cls(rows, pixels, vectors, node.factor(pixels), node.shift(pixels), *limits)

    def bind(self, node: QSoftmax, graph: Graph, config: Config) -> Binding:
        """The table of exponentials."""
        constants = {"table": node.table}
        tensors = {"data": node.data, "out": node.output}
        return Binding(tensors, constants, 0, 2 * elements(graph, node.output))

    def sizes(
        self, config: Config, vthreads: int, only: SoftmaxTile | None = None
    ) -> Iterator[SoftmaxTile]:
        """Whole rows, a tile for each thread."""
        for rows in parts(self.rows):
            if ceil_div(self.rows, rows) >= vthreads:
                yield SoftmaxTile(rows, vthreads)

    def cost(self, tile: SoftmaxTile, config: Config) -> TileCost:
        """A load, the operations on each vector, those on each row one after another, a store."""
        vectors = tile.rows * self.vectors * self.pixels
        move = transfer(vectors * config.out_entry, vectors * config.out_entry, config)
        store = transfer(vectors * config.out_entry, self.pixels * config.out_entry, config)
        small = tile.rows * self.vectors
        alu = group_cycles(vectors + small, config)
        alu = alu + STEPS * (vectors + STARTUP) + SMALL * (small + STARTUP)
        tiles = ceil_div(self.rows, tile.rows)
        share = shares(tiles, tiles, tile.vthreads)
        return TileCost(*share, inp=move, alu=alu, store=store, shared=False, pace=pace(config))

    def expression(self, config: Config) -> SoftmaxTensors:
        """The shares, and all that comes before them."""
        ins, lanes = intrinsics(config), config.block_out
        shape = self.rows, self.pixels, self.vectors, lanes
        data = te.placeholder(shape, "int8", "data")
        table = te.placeholder((TABLE_RESULTS,), "int16", "table")
        wide = widened(data, 0, "wide")
        softmax = softmax_stages(wide, 1, self.pixels, table, (self.factor, self.shift), ins)
        powers, word = softmax.powers, softmax.word

        def share(r: Expr, p: Expr, v: Expr, l: Expr) -> Expr:
            limits = self.zero, self.low, self.high
            return te.requantize(powers[r, p, v, l], word[r, v, l], *limits).astype("int8")

        out = te.compute(shape, share, "out")
        steps = [*softmax.steps[::-1], (wide, ins.load_acc8)]
        return SoftmaxTensors(data, table, steps, out)

    def schedule(self, tile: SoftmaxTile, config: Config) -> Schedule:
        """Whole rows in tiles that the threads share."""
        ins, e = intrinsics(config), self.expression(config)
        s = create_schedule(e.out, [e.data, e.table], self.NAME)
        powers = next(stage for stage, intrin in e.steps if intrin is ins.alu_table)
        table = s.cache_read(e.table, TAB, [powers])
        s[table].tensorize(s[table].axis[-1], ins.load_tab)
        rows, pixels, v, lanes = s[e.out].axis
        outer, inner = s[e.out].split(rows, factor=tile.rows)
        s[e.out].bind(outer, te.thread_axis("vthread", tile.vthreads))
        s[e.out].reorder(outer, inner, v, pixels, lanes)
        place(s, e.steps, e.out, outer)
        s[e.out].tensorize(lanes, ins.store8)
        return s
