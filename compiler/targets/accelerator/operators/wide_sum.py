"""Sums of tensors of 16 bits, and changes of their scale: loaded and stored as int32 or as int8."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.wide import MOST, QWideSum
from vdla.compiler.targets.accelerator.description import Intrinsics, intrinsics
from vdla.compiler.targets.accelerator.operators.pairwise import (
    PairTensors,
    Pairwise,
    requantized,
    widened,
)
from vdla.compiler.targets.accelerator.operators.template import (
    Array,
    Binding,
    elements,
    one_scale,
    vectors_of,
)
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

Step = tuple[Tensor, TensorIntrin]


@dataclass(frozen=True)
class WideSum(Pairwise[QWideSum]):
    """``clip((Σ (terms[i] - zeros[i]) · weights[i] + half) >> shift, low, high)`` as int32, or
    requantized as int8: ``narrow``. ``wide`` says which of the terms have 16 bits, ``offset``
    whether a constant of each element is added.
    """

    NAME = "wide_sum"
    NOUN = "sum of 16 bits"
    NODES = (QWideSum,)
    NUMBERS: ClassVar[Mapping[str, object]] = {"zero": 0, "low": 0, "high": 0}

    wide: tuple[bool, ...]
    zeros: tuple[int, ...]
    weights: tuple[int, ...]
    shift: int
    narrow: bool
    zero: int
    low: int
    high: int
    offset: bool = False

    @classmethod
    def of(cls, node: QWideSum, graph: Graph, config: Config) -> WideSum:
        """The template of a node."""
        limits = node.requant.limits if node.requant else (0, node.low, node.high)
        wide = tuple(graph.tensors[name].dtype == "int32" for name in node.terms)
        narrow, vectors = node.requant is not None, vectors_of(node, graph, config)
        sums = node.zeros, node.weights, node.shift, narrow
        return cls(vectors, wide, *sums, *limits, node.offset is not None)

    def bind(self, node: QWideSum, graph: Graph, config: Config) -> Binding:
        """One scale for all lanes, where the result is narrow."""
        constants: dict[str, Array] = {}
        if node.offset is not None:
            constants["offset"] = _spread(node, graph, config)
        if node.requant is not None:
            constants["scale"] = one_scale(node.requant.scale[0], config)
        tensors = {f"term{number}": name for number, name in enumerate(node.terms)}
        sizes = [4 if wide else 1 for wide in (*self.wide, not self.narrow)]
        moved = sum(sizes) * elements(graph, node.output)
        return Binding({**tensors, "out": node.output}, constants, 0, moved)

    @property
    def store(self) -> str:
        """Name of the intrinsic that stores int8, by way of a scale, or int32."""
        return "store8" if self.narrow else "store32"

    @property
    def alu_steps(self) -> int:
        """Operations of the ALU per vector: the sum, its shift and both limits."""
        rounding = 0 if self.narrow else 2 + 2 * bool(self.shift)
        return len(self.expression_steps) + self.offset + rounding

    @property
    def multiplications(self) -> int:
        """Operations of the ALU per vector that multiply or shift."""
        return len(self.expression_steps) + (0 if self.narrow else bool(self.shift))

    @property
    def expression_steps(self) -> tuple[int, ...]:
        """Weights that something is multiplied by; two by one operation."""
        return self.weights[:1] if len(self.weights) > 1 or self.weights[0] != 1 else ()

    def expression(self, config: Config) -> PairTensors:
        """The terms in ACC, their sum, and its rounding."""
        ins, lanes = intrinsics(config), config.block_out
        dims, steps = (self.vectors, lanes), list[Step]()
        terms = [self._term(number, dims, ins, steps) for number in range(len(self.wide))]
        last = self._summed([wide for _, wide in terms], ins, steps)
        inputs, constants = [term for term, _ in terms], list[Tensor]()
        if self.offset:
            inputs.append(te.placeholder(dims, "int32", "offset"))
            last = _moved(last, inputs[-1], ins, steps)
        if self.narrow:
            scale = te.placeholder((1, lanes), "int32", "scale")
            constants.append(scale)
            out = requantized(last, scale, (self.zero, self.low, self.high))
        else:
            out = self._rounded(last, ins, steps)
        return PairTensors(inputs, constants, steps[::-1], out)

    def _term(
        self, number: int, dims: tuple[int, int], ins: Intrinsics, steps: list[Step]
    ) -> tuple[Tensor, Tensor]:
        """A term, and what it is in ACC."""
        name = f"term{number}"
        if not self.wide[number]:
            term = te.placeholder(dims, "int8", name)
            wide = widened(term, self.zeros[number], f"wide{number}")
            steps.append((wide, ins.load_acc8))
            return term, wide
        term = te.placeholder(dims, "int32", name, value_range=(-MOST, MOST))
        wide = te.compute(dims, lambda *i: term[i], f"wide{number}")
        steps.append((wide, ins.load_acc))
        return term, wide

    def _summed(self, terms: list[Tensor], ins: Intrinsics, steps: list[Step]) -> Tensor:
        first, *others = terms
        weights = [te.const(weight) for weight in self.weights]
        if others:
            second = others[0]

            def both(*i: Expr) -> Expr:
                return first[i] * weights[0] + second[i] * weights[1]

            return _step(first.shape, both, "summed", ins.alu_wadd, steps)
        if self.weights[0] == 1:
            return first
        return _step(
            first.shape, lambda *i: first[i] * weights[0], "scaled", ins.alu_mul_imm, steps
        )

    def _rounded(self, last: Tensor, ins: Intrinsics, steps: list[Step]) -> Tensor:
        """Numbers of 16 bits, as they are stored."""
        dims, total = last.shape, last
        if self.shift:
            half, shift = te.const(1 << (self.shift - 1)), te.const(self.shift)
            more = _step(dims, lambda *i: total[i] + half, "more", ins.alu_add_imm, steps)
            last = _step(dims, lambda *i: more[i] >> shift, "shifted", ins.alu_shr_imm, steps)
        low, high, free = te.const(self.low), te.const(self.high), last
        below = _step(dims, lambda *i: te.minimum(free[i], high), "below", ins.alu_min_imm, steps)
        above = _step(dims, lambda *i: te.maximum(below[i], low), "above", ins.alu_max_imm, steps)
        return te.compute(dims, lambda *i: above[i], "out")


def _moved(total: Tensor, offset: Tensor, ins: Intrinsics, steps: list[Step]) -> Tensor:
    """A sum and a constant of each element."""
    held = _step(offset.shape, lambda *i: offset[i], "held", ins.load_acc, steps)
    return _step(offset.shape, lambda *i: total[i] + held[i], "moved", ins.alu_add, steps)


def _spread(node: QWideSum, graph: Graph, config: Config) -> Array:
    """A sum's offset for each element of the result, as vectors in the order in which they lie."""
    assert node.offset is not None
    array, shape = graph.constants[node.offset], graph.tensors[node.output].shape
    whole = np.broadcast_to(array, shape).reshape(*shape[:2], -1)
    lanes = config.channel_block
    padded = np.zeros((shape[0], ceil_div(shape[1], lanes) * lanes, whole.shape[2]), np.int32)
    padded[:, : shape[1]] = whole
    blocks = padded.reshape(shape[0], -1, lanes, whole.shape[2]).swapaxes(2, 3)
    return np.ascontiguousarray(blocks).reshape(-1, config.block_out)


def _step(
    shape: tuple[int, ...],
    value: Callable[..., Expr],
    name: str,
    intrin: TensorIntrin,
    steps: list[Step],
) -> Tensor:
    """A stage in ACC with its instruction."""
    tensor = te.compute(shape, value, name)
    steps.append((tensor, intrin))
    return tensor
