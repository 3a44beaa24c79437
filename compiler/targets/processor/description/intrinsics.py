"""A processor's instructions as tensor intrinsics, for ``tensorize`` in its functions.

dot4xN    a vector of N sums of four products of uint8 and int8 each (``codegen.emit_dot``)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vdla.compiler import te
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin

WORD_BYTES = 4


@dataclass(frozen=True)
class Dot:
    """Code generation's side: the processor's instruction, and the names of its operands' roles."""

    instruction: str
    data: str = "x"
    weight: str = "w"


@cache
def dot4(instruction: str, lanes: int) -> TensorIntrin:
    """``acc[l] += Σ_k x[k] * w[l, k]`` with k below 4, by the instruction of that name."""
    x = te.placeholder((WORD_BYTES,), "uint8", "x")
    w = te.placeholder((lanes, WORD_BYTES), "int8", "w")
    start = te.placeholder((lanes,), "int32", "start")
    k = te.reduce_axis((0, WORD_BYTES), "k")

    def dot(l: Expr) -> Expr:
        return te.sum(x[k].astype("int32") * w[l, k].astype("int32"), axis=k, init=start[l])

    acc: Tensor = te.compute((lanes,), dot, "acc")
    return te.decl_intrin(f"dot4x{lanes}", acc, lowering=Dot(instruction))
