"""Base of the templates of two tensors of one shape: tiles of vectors, wherever those lie."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, intrinsics
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
    N,
    Template,
    Tile,
    with_article,
    without_blocks,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class VectorTile(Tile):
    """Vectors of one tile, shared out among virtual threads tile by tile."""

    vectors: int
    vthreads: int = 1


@dataclass(frozen=True)
class PairTensors:
    """The tensors of an expression of two inputs: all that a schedule has to place.

    ``constants`` are rows of lanes that lie in ACC all the time; ``steps`` are what ACC holds on
    the way to ``out``, each with its instruction, the last one first.
    """

    inputs: Sequence[Tensor]
    constants: Sequence[Tensor]
    steps: Sequence[tuple[Tensor, TensorIntrin]]
    out: Tensor


@dataclass(frozen=True)
class Pairwise(Template[N, VectorTile]):
    """Two int8 tensors into one of their shape, element by element: ``vectors`` of ``block_out``
    lanes, in the order in which they lie in DRAM."""

    TILE = VectorTile

    vectors: int

    @property
    def alu_steps(self) -> int:
        """Operations of the ALU per vector."""
        return 1

    @property
    def multiplications(self) -> int:
        """Operations of the ALU per vector that multiply or shift."""
        return 0

    @property
    def store(self) -> str:
        """Name of the intrinsic that stores a vector of the result."""
        return "store8"

    @abstractmethod
    def expression(self, config: Config) -> PairTensors:
        """Expression of the result, with the instructions that compute it."""

    @classmethod
    def refusal(
        cls, node: N, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only images and vectors have channel blocks."""
        return without_blocks(node, graph)

    @property
    def wanted(self) -> str:
        """The noun with its article."""
        return with_article(self.NOUN)

    def tiles(
        self, config: Config, vthreads: int, only: VectorTile | None = None
    ) -> Iterator[VectorTile]:
        """Runs of vectors, of which ACC must hold one of each input for each thread."""
        e = self.expression(config)
        room = (config.depth("acc") - len(e.constants)) // len(e.inputs)
        for vectors in sizes(parts(self.vectors), only, "vectors"):
            if vectors * vthreads <= room and ceil(self.vectors / vectors) >= vthreads:
                yield VectorTile(vectors, vthreads)

    def cost(self, tile: VectorTile, config: Config) -> TileCost:
        """Two loads, some operations of the ALU and one store per tile."""
        e = self.expression(config)
        moves = [_transferred(tensor, tile, config) for tensor in (*e.inputs, e.out)]
        tiles = ceil_div(self.vectors, tile.vectors)
        share = shares(tiles, tiles, tile.vthreads)
        multiplied = tile.vectors * self.multiplications
        work = tile.vectors * self.alu_steps + group_cycles(multiplied, config)
        *loads, store = moves
        return TileCost(*share, inp=sum(loads), gemm=work, store=store, pace=pace(config))

    def nest(self, tile: VectorTile, config: Config) -> Nest:
        """Tiles without a reduction."""
        e = self.expression(config)
        loops = [Loop("tile", e.out.axis[0], tile.vectors)]
        inputs = [Issue("inp", 1, 1, tensor) for tensor in e.inputs]
        alu, store = Issue("alu", 1, self.alu_steps), Issue("out", 1, 1, e.out)
        return Nest(e.out, accesses(e.out), loops, [*inputs, alu, store])

    def schedule(self, tile: VectorTile, config: Config) -> Schedule:
        """Tiles the vectors and tensorizes every stage."""
        ins, e = intrinsics(config), self.expression(config)
        s = create_schedule(e.out, [*e.inputs, *e.constants], self.NAME)
        for constant in e.constants:
            users = [
                t
                for t in (*(step for step, _ in e.steps), e.out)
                if constant in t.compute_op.inputs
            ]
            held = s.cache_read(constant, ACC, users)
            s[held].tensorize(s[held].axis[-1], ins.load_acc)
        vectors, lanes = s[e.out].axis
        outer, _ = s[e.out].split(vectors, factor=tile.vectors)
        outer, thread = s[e.out].split(outer, factor=tile.vthreads)
        if tile.vthreads > 1:
            s[e.out].bind(thread, te.thread_axis("vthread"))
        for step, _ in e.steps:
            s[step].set_scope(ACC)
        for step, intrin in e.steps:
            s[step].compute_at(s[e.out], thread)
            s[step].tensorize(s[step].axis[-1], intrin)
        s[e.out].tensorize(lanes, ins[self.store])
        return s


def _transferred(tensor: Tensor, tile: VectorTile, config: Config) -> Size:
    """Cycles in which a tile of a tensor crosses the port."""
    size = tile.vectors * config.block_out * np.dtype(tensor.dtype).itemsize
    return transfer(size, size, config)


def widened(tensor: Tensor, zero_point: int, name: str) -> Tensor:
    """An int8 tensor in int32, less its zero point."""
    return te.compute(
        tensor.shape, lambda *i: tensor[i].astype("int32") - te.const(zero_point), name
    )


def requantized(acc: Tensor, scale: Tensor, limits: tuple[int, int, int]) -> Tensor:
    """The int8 result; ``limits`` are its zero point, lowest and highest value."""
    return te.compute(
        acc.shape,
        lambda v, l: te.requantize(acc[v, l], scale[0, l], *limits).astype("int8"),
        "out",
    )
