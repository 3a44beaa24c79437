"""Vectors as pixels of an image, and back: channel blocks stored with another stride."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.exchange import VECTORS, QExchange
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.moves import (
    Move,
    Moves,
    MoveTensors,
    MoveTile,
    ones,
    plain,
)
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.template import Binding, elements
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class Rows(Moves[QExchange]):
    """``out[x, y] = data[y, x]``, where every element is a block of channels.

    Rows of the data are vectors, and its pixels their blocks; of an image it is the other way.
    """

    NAME = "rows"
    NOUN = "exchange of vectors and pixels"
    NODES = (QExchange,)

    @classmethod
    def of(cls, node: QExchange, graph: Graph, config: Config) -> Rows:
        """The template of a node."""
        vectors = len(graph.tensors[node.data].shape) == VECTORS
        rows, channels = graph.tensors[node.data if vectors else node.output].shape
        blocks = ceil_div(channels, config.channel_block)
        sizes = (rows, blocks) if vectors else (blocks, rows)
        return cls(sizes[0], (sizes[1],), config.channel_block // config.block_out)

    def bind(self, node: QExchange, graph: Graph, config: Config) -> Binding:
        """A scale of 1 for all lanes."""
        tensors = {"data": node.data, "out": node.output}
        return Binding(tensors, {"scales": ones(config)}, 0, 2 * elements(graph, node.output))

    def run(self, tile: MoveTile) -> int:
        """A block."""
        return self.vectors

    def expression(self, config: Config) -> MoveTensors:
        """The data widened, and stored where they belong."""
        ins, shape = intrinsics(config), (self.rows, self.pixels[0], self.vectors, config.block_out)
        data, scales = (
            te.placeholder(shape, "int8", "data"),
            te.placeholder((1, config.block_out), "int32", "scales"),
        )
        wide = widened(data, 0, "wide")
        stored = te.compute(
            shape, lambda y, x, s, l: plain(wide[y, x, s, l], scales[0, l]), "stored"
        )
        out = te.assemble(
            (shape[1], shape[0], *shape[2:]), [(stored, lambda y, x, s, l: (x, y, s, l))], "out"
        )
        return MoveTensors([Move(data, [(wide, ins.load_acc8)], stored)], scales, out)
