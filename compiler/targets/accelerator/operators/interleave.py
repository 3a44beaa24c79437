"""Images whose pixels take turns: each is stored at every so many rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.interleave import QInterleave
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
from vdla.compiler.te import Tensor
from vdla.compiler.te.assemble import Place
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class Interleave(Moves[QInterleave]):
    """Pixel (y, x) of part k at row ``y * down + k / across``, column ``x * across + k % across``.

    Rows are those of all channel blocks of all images, one behind another.
    """

    NAME = "interleave"
    NOUN = "interleaving"
    NODES = (QInterleave,)

    down: int
    across: int

    @classmethod
    def of(cls, node: QInterleave, graph: Graph, config: Config) -> Interleave:
        """The template of images whose pixels take turns."""
        n, c, height, width = graph.tensors[node.parts[0]].shape
        rows = n * ceil_div(c, config.channel_block) * height
        pixels = (width,) * len(node.parts)
        return cls(rows, pixels, config.channel_block // config.block_out, node.rows, node.columns)

    def bind(self, node: QInterleave, graph: Graph, config: Config) -> Binding:
        """One scale, 1, for all lanes."""
        tensors = {f"part{i}": name for i, name in enumerate(node.parts)}
        moved = 2 * elements(graph, node.output)
        return Binding({**tensors, "out": node.output}, {"scales": ones(config)}, 0, moved)

    def run(self, tile: MoveTile) -> int:
        """A pixel, or all of a row where no other image's pixels lie between."""
        return self.vectors * (tile.pixels if self.across == 1 else 1)

    def expression(self, config: Config) -> MoveTensors:
        """Each part widened, and stored at its turns."""
        lanes, load = config.block_out, intrinsics(config).load_acc8
        scales = te.placeholder((1, lanes), "int32", "scales")
        moves = [self._move(number, scales, load) for number in range(len(self.pixels))]
        parts = [
            (move.stored, _turn(*divmod(number, self.across))) for number, move in enumerate(moves)
        ]
        shape = self.rows, self.down, self.pixels[0], self.across, self.vectors, lanes
        return MoveTensors(moves, scales, te.assemble(shape, parts, "out"))

    def _move(self, number: int, scales: Tensor, load: TensorIntrin) -> Move:
        """One part's way."""
        shape = self.rows, self.pixels[number], self.vectors, scales.shape[1]
        data = te.placeholder(shape, "int8", f"part{number}")
        wide = widened(data, 0, f"wide{number}")
        stored = te.compute(
            shape, lambda y, x, s, l: plain(wide[y, x, s, l], scales[0, l]), f"stored{number}"
        )
        return Move(data, [(wide, load)], stored)


def _turn(row: int, column: int) -> Place:
    """Place of the pixels whose turn comes at some row and column."""
    return lambda y, x, s, l: (y, row, x, column, s, l)
