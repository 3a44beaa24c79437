"""Residual addition on its own: two int8 tensors, one weighted sum, one requantization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vdla.compiler import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import add_terms
from vdla.compiler.targets.accelerator.description import intrinsics
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
from vdla.isa.config import Config


@dataclass(frozen=True)
class Add(Pairwise[ops.QAdd]):
    """``out = clip(rq((a - a_zero)·weight + (b - b_zero)·imm, scale) + zero, low, high)``."""

    NAME = "add"
    NOUN = "addition"
    NODES = (ops.QAdd,)
    NUMBERS: ClassVar[Mapping[str, object]] = dict.fromkeys(
        ("weight", "imm", "a_zero", "b_zero", "zero", "low", "high"), 0
    )

    weight: int
    imm: int
    a_zero: int
    b_zero: int
    zero: int
    low: int
    high: int

    @classmethod
    def of(cls, node: ops.QAdd, graph: Graph, config: Config) -> Add:
        """The integers of its scales, without the shift that the requantization does."""
        a, b, _ = add_terms(*node.requant.scale)
        vectors = vectors_of(node, graph, config)
        return cls(vectors, a, b, node.zeros[0], node.zeros[1], *node.requant.limits)

    def bind(self, node: ops.QAdd, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes."""
        _, _, k = add_terms(*node.requant.scale)
        constants = {"scale": one_scale(2.0**-k, config)}
        tensors = {"a": node.a, "b": node.b, "out": node.output}
        return Binding(tensors, constants, 0, 3 * elements(graph, node.output))

    @property
    def multiplications(self) -> int:
        """Operations of the ALU per vector that multiply: the sum, whose terms have weights."""
        return 1

    def expression(self, config: Config) -> PairTensors:
        """Both widened, their weighted sum, its requantization on the way to DRAM."""
        ins, dims = intrinsics(config), (self.vectors, config.block_out)
        a, b = te.placeholder(dims, "int8", "a"), te.placeholder(dims, "int8", "b")
        scale = te.placeholder((1, config.block_out), "int32", "scale")
        wide_a, wide_b = widened(a, self.a_zero, "wide_a"), widened(b, self.b_zero, "wide_b")
        weight, imm = te.const(self.weight), te.const(self.imm)
        added = te.compute(dims, lambda *i: wide_a[i] * weight + wide_b[i] * imm, "added")
        out = requantized(added, scale, (self.zero, self.low, self.high))
        steps = [(added, ins.alu_wadd), (wide_b, ins.load_acc8), (wide_a, ins.load_acc8)]
        return PairTensors([a, b], [scale], steps, out)
