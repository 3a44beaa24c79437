"""Concatenation of images: each part is requantized on its way to its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.concat import QConcat
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.moves import (
    Move,
    Moves,
    MoveTensors,
    MoveTile,
)
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL, Binding, elements
from vdla.compiler.te import Tensor
from vdla.compiler.te.assemble import Place
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.isa.numbers import pack_scale
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class Concat(Moves[QConcat]):
    """``out = clip(rq(part - zeros[i], scales[i]) + zero, low, high)``, one part behind another.

    A row is what lies before the axis in the order [N, ceil(C/block), H, W], a pixel a vector: of
    each row, all of a part's vectors lie side by side, in the part as in the result.
    """

    NAME = "concat"
    NOUN = "concatenation"
    NODES = (QConcat,)
    NUMBERS: ClassVar[Mapping[str, object]] = {"zeros": (), "zero": 0, "low": 0, "high": 0}

    zeros: tuple[int, ...]
    zero: int
    low: int
    high: int

    @classmethod
    def refusal(
        cls, node: QConcat, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only whole blocks of channels can lie one behind another."""
        rank, block = len(graph.tensors[node.output].shape), config.channel_block
        if rank not in (2, 4):
            return f"a tensor of {rank} dimensions has no channel blocks"
        for name in node.parts[:-1] if node.axis == 1 else ():
            channels = graph.tensors[name].shape[1]
            if channels % block:
                return f"a part of {channels} channels doesn't end with a block of {block}"
        return None

    @classmethod
    def of(cls, node: QConcat, graph: Graph, config: Config) -> Concat:
        """The template of a concatenation; scales are constants."""
        block, sub = config.channel_block, config.channel_block // config.block_out
        sizes = [
            (n, ceil_div(channels, block), *image)
            for n, channels, *image in (graph.tensors[part].shape for part in node.parts)
        ]
        rows = prod(sizes[0][: node.axis])
        vectors = tuple(prod(size[node.axis :]) * sub for size in sizes)
        return cls(rows, vectors, 1, node.zeros, *node.requant.limits)

    def bind(self, node: QConcat, graph: Graph, config: Config) -> Binding:
        """A scale for all lanes of each part."""
        words = np.array([pack_scale(scale) for scale in node.requant.scale], np.int32)
        scales = np.repeat(words[:, np.newaxis], config.block_out, axis=1)
        tensors = {f"part{i}": name for i, name in enumerate(node.parts)}
        moved = 2 * elements(graph, node.output)
        return Binding({**tensors, "out": node.output}, {"scales": scales}, 0, moved)

    def run(self, tile: MoveTile) -> int:
        """All pixels of a row."""
        return tile.pixels

    def expression(self, config: Config) -> MoveTensors:
        """Each part widened, and requantized where its channels begin."""
        ins, lanes = intrinsics(config), config.block_out
        scales = te.placeholder((len(self.pixels), lanes), "int32", "scales")
        moves = [self._move(number, scales, ins.load_acc8) for number in range(len(self.pixels))]
        starts = accumulate(self.pixels, initial=0)
        parts = [(move.stored, _behind(start)) for move, start in zip(moves, starts, strict=False)]
        out = te.assemble((self.rows, sum(self.pixels), lanes), parts, "out")
        return MoveTensors(moves, scales, out)

    def _move(self, number: int, scales: Tensor, load: TensorIntrin) -> Move:
        """One part's way, with a scale of its own."""
        shape = self.rows, self.pixels[number], scales.shape[1]
        data = te.placeholder(shape, "int8", f"part{number}")
        zero = self.zeros[number] if self.zeros else 0  # a geometry has none
        wide = widened(data, zero, f"wide{number}")
        limits = self.zero, self.low, self.high
        stored = te.compute(
            shape,
            lambda n, v, l: te.requantize(wide[n, v, l], scales[number, l], *limits).astype("int8"),
            f"stored{number}",
        )
        return Move(data, [(wide, load)], stored)


def _behind(start: int) -> Place:
    """Place of the vectors of a part that has ``start`` of them before it."""
    return lambda n, v, l: (n, v + start, l)
