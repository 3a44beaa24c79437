"""The two bytes of tensors of 16 bits: loaded as int32, stored as int8, low before high."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.wide import BYTE_BITS, MOST, QBytes, Quantize16
from vdla.compiler.targets.accelerator.description import Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.moves import (
    Move,
    Moves,
    MoveTensors,
    MoveTile,
    ones,
    plain,
)
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Binding,
    elements,
    vectors_of,
    without_blocks,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config

Steps = list[tuple[Tensor, TensorIntrin]]
TOP = 32 - BYTE_BITS  # bits above a byte in a lane


@dataclass(frozen=True)
class Bytes(Moves[QBytes]):
    """``low[n, v] = data[n, v] << 24 >> 24`` and ``high[n, v] = (data[n, v] + 128) >> 8``.

    Rows are images, and all their vectors one pixel after another.
    """

    NAME = "bytes"
    NOUN = "split into bytes"
    NODES = (QBytes,)

    @classmethod
    def refusal(
        cls, node: QBytes, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only images and vectors have channel blocks; what the host quantizes it splits, too."""
        if any(node.data in each.outputs for each in graph.of(Quantize16)):
            return "bytes of what the host quantizes"
        return without_blocks(node, graph)

    @classmethod
    def of(cls, node: QBytes, graph: Graph, config: Config) -> Bytes:
        """The template of a node: each image is read twice."""
        images = graph.tensors[node.data].shape[0]
        return cls(images, (vectors_of(node, graph, config) // (2 * images),) * 2, 1)

    def bind(self, node: QBytes, graph: Graph, config: Config) -> Binding:
        """One scale, 1, for all lanes."""
        moved = 4 * elements(graph, node.data) + elements(graph, node.output)
        tensors = {**dict.fromkeys(("low", "high"), node.data), "out": node.output}
        return Binding(tensors, {"scales": ones(config)}, 0, moved)

    def run(self, tile: MoveTile) -> int:
        """All vectors of a tile."""
        return tile.pixels

    @property
    def alu_steps(self) -> int:
        """Two for each byte."""
        return 2

    @property
    def multiplications(self) -> int:
        """Shifts: of the low byte both, of the high one the second."""
        return 2

    def loaded(self, tile: MoveTile) -> int:
        """Vectors of int8 that have as many bytes as what a tile loads."""
        return 4 * tile.rows * tile.pixels

    def expression(self, config: Config) -> MoveTensors:
        """Each byte of the data, and where it is stored."""
        ins, lanes = intrinsics(config), config.block_out
        shape = self.rows, self.pixels[0], 1, lanes
        low, high = (
            te.placeholder(shape, "int32", name, value_range=(-MOST, MOST))
            for name in ("low", "high")
        )
        scales = te.placeholder((1, lanes), "int32", "scales")
        moves = [
            _stored(low, scales, _low(low, ins), "stored0"),
            _stored(high, scales, _high(high, ins), "stored1"),
        ]
        parts = [
            (moves[0].stored, lambda y, x, s, l: (y, 0, x, s, l)),
            (moves[1].stored, lambda y, x, s, l: (y, 1, x, s, l)),
        ]
        out = te.assemble((self.rows, 2, self.pixels[0], 1, lanes), parts, "out")
        return MoveTensors(moves, scales, out)


def _stored(data: Tensor, scales: Tensor, steps: Steps, name: str) -> Move:
    """One byte's way."""
    last = steps[0][0]
    stored = te.compute(data.shape, lambda *i: plain(last[i], scales[0, i[-1]]), name)
    return Move(data, steps, stored)


def _low(data: Tensor, ins: Intrinsics) -> Steps:
    """The low byte, signed; the last step first."""
    wide = te.compute(data.shape, lambda *i: data[i], "wide_low")
    up = te.compute(data.shape, lambda *i: wide[i] << te.const(TOP), "up")
    down = te.compute(data.shape, lambda *i: up[i] >> te.const(TOP), "down")
    return [(down, ins.alu_shr_imm), (up, ins.alu_shl_imm), (wide, ins.load_acc)]


def _high(data: Tensor, ins: Intrinsics) -> Steps:
    """The high byte, so that 256 of it and the low one are the whole; the last step first."""
    wide = te.compute(data.shape, lambda *i: data[i], "wide_high")
    more = te.compute(data.shape, lambda *i: wide[i] + te.const(1 << (BYTE_BITS - 1)), "more")
    upper = te.compute(data.shape, lambda *i: more[i] >> te.const(BYTE_BITS), "upper")
    return [(upper, ins.alu_shr_imm), (more, ins.alu_add_imm), (wide, ins.load_acc)]
