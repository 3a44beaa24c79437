"""Residual addition on its own: two int8 tensors, one weighted sum, one requantization."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, prod
from typing import Any, ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import add_terms
from vdla.compiler.operators.cost import TileCost, parts, shares, sizes, transfer
from vdla.compiler.operators.nest import Knobs, Nest, flat
from vdla.compiler.operators.template import Binding, Template, Tile, elements
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.target import ACC, intrinsics
from vdla.compiler.te import Tensor
from vdla.isa.config import Config
from vdla.isa.numbers import pack_scale


@dataclass(frozen=True)
class AddTile(Tile):
    """Vectors of one tile, shared out among virtual threads tile by tile."""

    vectors: int
    vthreads: int = 1


@dataclass(frozen=True)
class Add(Template[AddTile]):
    """``out = clip(rq((a - a_zero)·weight + (b - b_zero)·imm, scale) + zero, low, high)``."""

    NAME = "add"
    NOUN = "addition"
    NODES = (ops.QAdd,)
    NUMBERS: ClassVar[Mapping[str, Any]] = dict.fromkeys(
        ("weight", "imm", "a_zero", "b_zero", "zero", "low", "high"), 0
    )

    vectors: int
    weight: int
    imm: int
    a_zero: int
    b_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def refusal(cls, node: Any, graph: Graph, config: Config, min_fill: float) -> str | None:
        """Only images and vectors have channel blocks."""
        rank = len(graph.tensors[node.output].shape)
        return None if rank in (2, 4) else f"a tensor of {rank} dimensions has no channel blocks"

    @classmethod
    def of(cls, node: Any, graph: Graph, config: Config) -> Add:
        """All of the tensor's vectors, in the order in which they lie in DRAM."""
        a, b, _ = add_terms(*node.scales)
        n, c, *image = graph.tensors[node.output].shape
        vectors = n * -(-c // config.channel_block) * prod(image) * config.channel_block
        vectors //= config.block_out
        return cls(vectors, a, b, node.a_zp, node.b_zp, node.out_zp, node.lo, node.hi)

    def bind(self, node: Any, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes."""
        _, _, k = add_terms(*node.scales)
        constants = {"scale": np.full((1, config.block_out), pack_scale(2.0**-k), np.int32)}
        tensors = {"a": node.a, "b": node.b, "out": node.output}
        return Binding(tensors, constants, 0, 3 * elements(graph, node.output))

    @property
    def wanted(self) -> str:
        """With its article."""
        return f"an {self.NOUN}"

    def schedule(self, tile: AddTile, config: Config) -> Schedule:
        """Tiled by ``tile``, every stage tensorized."""
        return _schedule(_expression(self, config), tile, config)

    def tiles(
        self, config: Config, vthreads: int, only: AddTile | None = None
    ) -> Iterator[AddTile]:
        """Runs of vectors, two of which must lie in ACC for each thread."""
        for vectors in sizes(parts(self.vectors), only, "vectors"):
            fits = 2 * vectors * vthreads + 1 <= config.depth("acc")
            if fits and ceil(self.vectors / vectors) >= vthreads:
                yield AddTile(vectors, vthreads)

    def cost(self, tile: AddTile, config: Config) -> TileCost:
        """Two loads, one operation of the ALU and one store per tile."""
        size = tile.vectors * config.out_entry
        move = transfer(size, size, config)
        tiles = ceil(self.vectors / tile.vectors)
        share = shares(tiles, tiles, tile.vthreads)
        return TileCost(*share, 1, 1, 2 * move, 0.0, tile.vectors, 0.0, 0.0, move)

    def nest(self, knobs: Knobs, config: Config) -> Nest:
        """Tiles without a reduction."""
        tiles = -(-self.vectors // knobs["vectors"])
        out = np.full(len(tiles), float(self.vectors * config.out_entry))
        tile = knobs["vectors"] * float(config.out_entry)
        touched = {"inp": {"layer": 2 * out, "tile": 2 * tile}, "out": {"layer": out, "tile": tile}}
        commands = {"inp": 2 * tiles, "alu": tiles, "out": tiles}
        last = (self.vectors - (tiles - 1) * knobs["vectors"]) * float(config.out_entry)
        moved = {"inp": 2 * out, "out": out}
        return Nest(float(out[0]), flat(tiles), touched, moved, commands, 2 * tile + last)


# Expression and schedule -------------------------------------------------------------------------


@dataclass(frozen=True)
class AddTensors:
    """The tensors of an addition's expression."""

    a: Tensor
    b: Tensor
    scale: Tensor
    wide_a: Tensor
    wide_b: Tensor
    added: Tensor
    out: Tensor

    @property
    def inputs(self) -> list[Tensor]:
        """The placeholders, in the order of the function's parameters."""
        return [self.a, self.b, self.scale]


def _expression(shape: Add, config: Config) -> AddTensors:
    """The expression of an addition over vectors of block_out lanes."""
    dims = (shape.vectors, config.block_out)
    a, b = te.placeholder(dims, "int8", "a"), te.placeholder(dims, "int8", "b")
    scale = te.placeholder((1, config.block_out), "int32", "scale")
    wide_a = te.compute(dims, lambda *i: a[i].astype("int32") - te.const(shape.a_zero), "wide_a")
    wide_b = te.compute(dims, lambda *i: b[i].astype("int32") - te.const(shape.b_zero), "wide_b")
    added = te.compute(
        dims,
        lambda *i: wide_a[i] * te.const(shape.weight) + wide_b[i] * te.const(shape.imm),
        "added",
    )
    out = te.compute(
        dims,
        lambda v, l: te.requantize(
            added[v, l], scale[0, l], shape.zero, shape.low, shape.high
        ).astype("int8"),
        "out",
    )
    return AddTensors(a, b, scale, wide_a, wide_b, added, out)


def _schedule(expression: AddTensors, tile: AddTile, config: Config) -> Schedule:
    """Tiles the vectors and tensorizes every stage."""
    ins, e = intrinsics(config), expression
    s = create_schedule(e.out, e.inputs, "add")
    scale = s.cache_read(e.scale, ACC, [e.out])
    s[scale].tensorize(s[scale].axis[-1], ins.load_acc)
    vectors, lanes = s[e.out].axis
    outer, _ = s[e.out].split(vectors, factor=tile.vectors)
    outer, thread = s[e.out].split(outer, factor=tile.vthreads)
    if tile.vthreads > 1:
        s[e.out].bind(thread, te.thread_axis("vthread"))
    finish = {e.added: ins.alu_wadd, e.wide_b: ins.load_acc8, e.wide_a: ins.load_acc8}
    for stage in finish:
        s[stage].set_scope(ACC)
    for stage, intrin in finish.items():
        s[stage].compute_at(s[e.out], thread)
        s[stage].tensorize(s[stage].axis[-1], intrin)
    s[e.out].tensorize(lanes, ins.store8)
    return s
