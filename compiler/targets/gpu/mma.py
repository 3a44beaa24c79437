"""Products of small matrices by NVIDIA's tensor cores, as tensor intrinsics.

    mma_f16    acc[16, 8] += a[16, 16] * b[16, 8], of float16, in float32
    mma_s8     acc[16, 8] += a[16, 32] * b[32, 8], of int8, in int32

A warp, which is 32 threads along ``threadIdx.x``, does one together; ``acc`` is in scope "warp":
each lane has four of its 128 elements (``passes.lanes``). Which lane has which elements is the
hardware's, with g = lane / 4 and t = lane % 4 (PTX ISA, "Matrix fragments for mma.m16n8k16" and
"for mma.m16n8k32"):

    acc    element e             at row g + 8 * (e / 2), column 2 * t + e % 2
    a      register r, item i    at row g + 8 * (r % 2), column w * t + 4 * w * (r / 2) + i
    b      register r, item i    at row w * t + 4 * w * r + i, column g

A register has w items: two of float16, four of int8.
"""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import SHARED, Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin

WARP = "warp"  # the scope of what a warp's lanes have together, each some elements
LANES = 32
ROWS, COLUMNS = 16, 8
OWN = ROWS * COLUMNS // LANES  # elements of acc that a lane has
MMA = "mma"  # annotation of the loop over a lane's elements that an instruction of a warp does


@dataclass(frozen=True)
class Mma:
    """Code generation's side: LLVM's name of the instruction, and its shape.

    ``depth`` is how many products each sum has, ``items`` how many numbers a register has.
    """

    name: str
    depth: int
    items: int


F16 = Mma("llvm.nvvm.mma.m16n8k16.row.col.f32.f32", 16, 2)
S8 = Mma("llvm.nvvm.mma.m16n8k32.row.col.s8", 32, 4)
INSTRUCTIONS = {mma.name: mma for mma in (F16, S8)}


def _declare(name: str, mma: Mma, dtype: str, total: str) -> TensorIntrin:
    """An intrinsic by the types of its factors and of its sums."""
    a = te.placeholder((ROWS, mma.depth), dtype, "a")
    b = te.placeholder((mma.depth, COLUMNS), dtype, "b")
    k = te.reduce_axis((0, mma.depth), "k")

    def product(y: Expr, x: Expr) -> Expr:
        return te.sum(a[y, k].astype(total) * b[k, x].astype(total), axis=k)

    acc: Tensor = te.compute((ROWS, COLUMNS), product, "acc")
    return te.decl_intrin(name, acc, scopes={acc: WARP, a: SHARED, b: SHARED}, lowering=mma)


mma_f16 = _declare("mma_f16", F16, "float16", "float32")
mma_s8 = _declare("mma_s8", S8, "int8", "int32")


def row(lane: Expr, half: Expr) -> Expr:
    """The row of acc that a lane has in the upper or the lower half."""
    return lane // 4 + half * 8


def column(lane: Expr, odd: Expr) -> Expr:
    """The column of acc that a lane has, the even or the odd one."""
    return lane % 4 * 2 + odd
