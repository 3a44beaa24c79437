"""Nearest upsampling by whole factors: each pixel is written several times side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.take import QTake
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
from vdla.compiler.targets.accelerator.operators.template import MIN_FILL, Binding, elements
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class Upsampling(Moves[QTake]):
    """Pixel (y, x) of the result is pixel (y / down, x / across) of the data, rounded down.

    Rows are those of all channel blocks of all images, one behind another. The ALU writes a row's
    pixels ``across`` times side by side, since a STORE of whole rows takes half the cycles of one
    that leaves gaps; the STORE writes each row ``down`` times.
    """

    NAME = "upsampling"
    NOUN = "upsampling"
    NODES = (QTake,)

    down: int
    across: int

    @classmethod
    def refusal(
        cls, node: QTake, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only whole repetitions of rows and columns are addresses that step evenly."""
        if len(node.shape) != 4:
            return f"a tensor of {len(node.shape)} dimensions has no channel blocks"
        shape = graph.tensors[node.data].shape
        batch, channels, *image = map(_repeats, node.tables(), shape)
        if (batch, channels) != (1, 1) or None in image:
            return "elements other than each row and each column a number of times"
        return None

    @classmethod
    def of(cls, node: QTake, graph: Graph, config: Config) -> Upsampling:
        """The template of an upsampling."""
        n, c, height, width = graph.tensors[node.data].shape
        rows = n * ceil_div(c, config.channel_block) * height
        sub = config.channel_block // config.block_out
        return cls(rows, (width,), sub, node.shape[2] // height, node.shape[3] // width)

    @classmethod
    def placed(cls, node: QTake) -> str:
        """The one kind of ``QTake`` that is placed here."""
        return "nearest upsampling on int8"

    def bind(self, node: QTake, graph: Graph, config: Config) -> Binding:
        """One scale, 1, for all lanes."""
        tensors = {"data": node.data, "out": node.output}
        moved = elements(graph, node.data) + elements(graph, node.output)
        return Binding(tensors, {"scales": ones(config)}, 0, moved)

    @property
    def grown(self) -> tuple[int, int]:
        """How often an operand's row is stored, and its pixels in a row."""
        return self.down, self.across

    def run(self, tile: MoveTile) -> int:
        """A row, with its pixels several times."""
        return tile.pixels * self.across * self.vectors

    def expression(self, config: Config) -> MoveTensors:
        """The data widened, its pixels repeated in ACC, its rows on the way to DRAM."""
        ins, lanes = intrinsics(config), config.block_out
        width, *pixel = self.pixels[0], self.vectors, lanes
        scales = te.placeholder((1, lanes), "int32", "scales")
        data = te.placeholder((self.rows, width, *pixel), "int8", "data")
        wide = widened(data, 0, "wide")
        steps, shape = [(wide, ins.load_acc8)], (self.rows, width, self.across, *pixel)
        line = te.compute(shape, lambda y, x, q, s, l: wide[y, x, s, l], "line")
        if self.across > 1:
            steps = [(line, ins.alu_copy), *steps]
        stored = te.compute(
            (self.rows, width, self.down, self.across, *pixel),
            lambda y, x, r, q, s, l: plain(
                line[y, x, q, s, l] if self.across > 1 else wide[y, x, s, l], scales[0, l]
            ),
            "stored",
        )
        out = te.assemble(
            (self.rows, self.down, width, self.across, *pixel),
            [(stored, lambda y, x, r, q, s, l: (y, r, x, q, s, l))],
            "out",
        )
        return MoveTensors([Move(data, steps, stored, stored.axis[2:3])], scales, out)


def _repeats(table: Sequence[int], size: int) -> int | None:
    """How often a table has each index of an axis, one after another; None where it hasn't."""
    times, rest = divmod(len(table), size)
    if rest or list(table) != [i // times for i in range(len(table))]:
        return None
    return times
