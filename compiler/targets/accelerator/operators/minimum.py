"""Elementwise minimum: two int8 tensors, brought to one scale where they have two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.targets.accelerator.description import Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.pairwise import (
    PairTensors,
    Pairwise,
    requantized,
    widened,
)
from vdla.compiler.targets.accelerator.operators.template import (
    Binding,
    elements,
    one_scale,
    vectors_of,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config


@dataclass(frozen=True)
class Minimum(Pairwise[QMinimum]):
    """``out = clip(min(rq(a - a_zero, scale_a), rq(b - b_zero, scale_b)) + zero, low, high)``.

    Where both scales are one (``alike``), the lesser is found first and requantized on its way to
    DRAM; else each operand is requantized in ACC, and the lesser is stored as it is.
    """

    NAME = "minimum"
    NOUN = "minimum"
    NODES = (QMinimum,)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(
        ("a_zero", "b_zero", "zero", "low", "high"), 0
    )

    alike: bool
    a_zero: int
    b_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def of(cls, node: QMinimum, graph: Graph, config: Config) -> Minimum:
        """The template of a minimum, with its zero points and limits; scales are constants."""
        vectors, (a, b) = vectors_of(node, graph, config), node.requant.scale
        return cls(vectors, a == b, node.zeros[0], node.zeros[1], *node.requant.limits)

    def bind(self, node: QMinimum, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes: of the result, or of each operand and 1 for the result."""
        scale_a, scale_b = node.requant.scale
        scales = {"scale": scale_a}
        if not self.alike:
            scales = {"scale_a": scale_a, "scale_b": scale_b, "scale": 1.0}
        constants = {key: one_scale(scale, config) for key, scale in scales.items()}
        tensors = {"a": node.a, "b": node.b, "out": node.output}
        return Binding(tensors, constants, 0, 3 * elements(graph, node.output))

    @property
    def alu_steps(self) -> int:
        """The minimum, and a requantization of each operand."""
        return 1 if self.alike else 3

    @property
    def multiplications(self) -> int:
        """The requantizations."""
        return self.alu_steps - 1

    def expression(self, config: Config) -> PairTensors:
        """Both widened, each at the result's scale, the lesser, its way to DRAM."""
        ins, dims = intrinsics(config), (self.vectors, config.block_out)
        a, b = te.placeholder(dims, "int8", "a"), te.placeholder(dims, "int8", "b")
        wide_a, wide_b = widened(a, self.a_zero, "wide_a"), widened(b, self.b_zero, "wide_b")
        loads = [(wide_b, ins.load_acc8), (wide_a, ins.load_acc8)]
        scale = te.placeholder((1, config.block_out), "int32", "scale")
        constants, steps = [scale], loads
        first, second = wide_a, wide_b
        if not self.alike:
            scales = [te.placeholder(scale.shape, "int32", f"scale_{n}") for n in "ab"]
            first = self._at_scale(wide_a, scales[0], "scaled_a")
            second = self._at_scale(wide_b, scales[1], "scaled_b")
            constants = [*scales, scale]
            steps = [(second, ins.alu_rq), loads[0], (first, ins.alu_rq), loads[1]]
        chosen, choose = self.choice(ins)
        step = te.compute(dims, lambda *i: chosen(first[i], second[i]), "chosen")
        out = requantized(step, scale, (self.zero, self.low, self.high))
        return PairTensors([a, b], constants, [(step, choose), *steps], out)

    def choice(self, ins: Intrinsics) -> tuple[Callable[[Expr, Expr], Expr], TensorIntrin]:
        """Which of two values is taken, as an expression and as an instruction."""
        return te.minimum, ins.alu_min

    def _at_scale(self, wide: Tensor, scale: Tensor, name: str) -> Tensor:
        """An operand at the result's scale, clipped already, still without the zero point."""
        low, high = self.low - self.zero, self.high - self.zero
        return te.compute(
            wide.shape, lambda v, l: te.requantize(wide[v, l], scale[0, l], 0, low, high), name
        )
