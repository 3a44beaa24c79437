"""Products of two int8 tensors, or of one and a gate: a value for each channel of each image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.multiply import QMultiply
from vdla.compiler.targets.accelerator.description import intrinsics
from vdla.compiler.targets.accelerator.operators.moves import Move, Moves, MoveTensors, MoveTile
from vdla.compiler.targets.accelerator.operators.pairwise import widened
from vdla.compiler.targets.accelerator.operators.template import (
    MIN_FILL,
    Binding,
    elements,
    one_scale,
    without_blocks,
)
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class Multiply(Moves[QMultiply]):
    """``out = clip(rq((a - a_zero) · (b - b_zero), scale) + zero, low, high)``.

    A row is a channel block of an image. Of a ``gate`` it has one pixel, by which all are
    multiplied.
    """

    NAME = "multiply"
    NOUN = "product"
    NODES = (QMultiply,)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(
        ("a_zero", "b_zero", "zero", "low", "high"), 0
    )

    gate: bool
    a_zero: int
    b_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def refusal(
        cls, node: QMultiply, graph: Graph, config: Config, min_fill: float = MIN_FILL
    ) -> str | None:
        """Only images and vectors have channel blocks."""
        return without_blocks(node, graph)

    @classmethod
    def of(cls, node: QMultiply, graph: Graph, config: Config) -> Multiply:
        """The template of a product, with its zero points and limits; its scale is a constant."""
        shape = graph.tensors[node.output].shape
        n, c, *image = shape
        rows, sub = n * ceil_div(c, config.channel_block), config.channel_block // config.block_out
        gate = graph.tensors[node.b].shape != shape
        numbers = *node.zeros, *node.requant.limits
        return cls(rows, (prod(image),), sub, gate, *numbers)

    def bind(self, node: QMultiply, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes."""
        scales = one_scale(node.requant.scale[0], config)
        tensors = {"a": node.a, "b": node.b, "out": node.output}
        moved = 2 * elements(graph, node.output) + elements(graph, node.b)
        return Binding(tensors, {"scales": scales}, 0, moved)

    @property
    def alu_steps(self) -> int:
        """One multiplication."""
        return 1

    @property
    def multiplications(self) -> int:
        """That one."""
        return 1

    def loaded(self, tile: MoveTile) -> int:
        """Vectors of both operands."""
        return tile.rows * (tile.pixels + (1 if self.gate else tile.pixels)) * self.vectors

    def run(self, tile: MoveTile) -> int:
        """All pixels of a row."""
        return tile.pixels * self.vectors

    def expression(self, config: Config) -> MoveTensors:
        """Both widened, their product, its requantization on the way to DRAM."""
        ins, lanes, gate = intrinsics(config), config.block_out, self.gate
        shape = self.rows, self.pixels[0], self.vectors, lanes
        a = te.placeholder(shape, "int8", "a")
        b = te.placeholder((shape[0], 1, *shape[2:]) if gate else shape, "int8", "b")
        scales = te.placeholder((1, lanes), "int32", "scales")
        wide_a, wide_b = widened(a, self.a_zero, "wide_a"), widened(b, self.b_zero, "wide_b")
        product = te.compute(
            shape,
            lambda y, x, s, l: wide_a[y, x, s, l] * wide_b[y, 0 if gate else x, s, l],
            "product",
        )
        limits = self.zero, self.low, self.high
        out = te.compute(
            shape,
            lambda y, x, s, l: te.requantize(product[y, x, s, l], scales[0, l], *limits).astype(
                "int8"
            ),
            "out",
        )
        loads = [(wide_b, ins.load_acc8), (wide_a, ins.load_acc8)]
        move = Move(a, [(product, ins.alu_mul), *loads], out, others=(b,))
        return MoveTensors([move], scales, out)
