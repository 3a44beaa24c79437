"""A processor's instructions as tensor intrinsics, for ``tensorize`` in host functions.

    dot4    16 sums of four products of uint8 and int8 each (x86: AVX-512 VNNI's vpdpbusd)

The instruction's sums are exact: it doesn't saturate (Intel SDM, VPDPBUSD).
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
    """Code generation's side: the function of LLVM's, and the names of its operands' roles.

    The function takes and gives vectors of int32: the sums, the data's word in every lane, the
    weights.
    """

    function: str
    data: str = "x"
    weight: str = "w"


@cache
def dot4(function: str, lanes: int) -> TensorIntrin:
    """``acc[l] += Σ_k x[k] * w[l, k]`` with k below 4, as ``function`` of LLVM's does it."""
    x = te.placeholder((WORD_BYTES,), "uint8", "x")
    w = te.placeholder((lanes, WORD_BYTES), "int8", "w")
    start = te.placeholder((lanes,), "int32", "start")
    k = te.reduce_axis((0, WORD_BYTES), "k")

    def dot(l: Expr) -> Expr:
        return te.sum(x[k].astype("int32") * w[l, k].astype("int32"), axis=k, init=start[l])

    acc: Tensor = te.compute((lanes,), dot, "acc")
    return te.decl_intrin("dot4", acc, lowering=Dot(function))
