"""Base of the templates of one tensor: its vectors, in the order in which they lie in DRAM."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.targets.accelerator.operators.moves import Moves, MoveTile
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    N,
    vectors_of,
    without_blocks,
)
from vdla.compiler.te import Tensor
from vdla.isa.config import Config


@dataclass(frozen=True)
class Unary(Moves[N]):
    """An int8 tensor into one of its shape, element by element: one row of so many pixels, each of
    which is a vector."""

    @classmethod
    def refusal(
        cls, node: N, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only images and vectors have channel blocks."""
        return without_blocks(node, graph)

    @staticmethod
    def size(node: N, graph: Graph, config: Config) -> tuple[int, tuple[int], int]:
        """Rows, pixels, and vectors of a pixel."""
        return 1, (vectors_of(node, graph, config),), 1

    def run(self, tile: MoveTile) -> int:
        """All of a tile."""
        return tile.pixels

    def data(self, config: Config) -> Tensor:
        """The operand."""
        return te.placeholder((1, *self.pixels, config.block_out), "int8", "data")
