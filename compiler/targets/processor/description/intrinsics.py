"""A processor's instructions as tensor intrinsics, for ``tensorize`` in its functions.

dot4xN            a vector of N sums of four products of uint8 and int8 each (``codegen.emit_dot``)
tilesRxVxS        R rows of V vectors of 16 sums of 64 * S such products (``codegen.emit_tiles``)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from vdla.compiler import te
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.compiler.tir.ir.intrin import TensorIntrin

WORD_BYTES = 4
TILE_ROWS, TILE_BYTES, TILE_LANES = 16, 64, 16  # of a tile register; the last of int32
MOST_TILES = 2  # of rows, and of columns, whose sums are in registers at once


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


@dataclass(frozen=True)
class Tiles:
    """Code generation's side: how many rows of data, vectors of columns, and steps of 64 bytes."""

    high: int
    wide: int
    steps: int


@cache
def tile_product(high: int, wide: int, steps: int) -> TensorIntrin:
    """``acc[r, v, l] += Σ_k,b x[r, k, b] * w[k, v, l, b]`` in tile registers, with b below 4 and k
    below 16 * steps."""
    words = steps * TILE_BYTES // WORD_BYTES
    x = te.placeholder((high, words, WORD_BYTES), "uint8", "x")
    w = te.placeholder((words, wide, TILE_LANES, WORD_BYTES), "int8", "w")
    start = te.placeholder((wide, TILE_LANES), "int32", "start")
    k, b = te.reduce_axis((0, words), "k"), te.reduce_axis((0, WORD_BYTES), "b")

    def product(r: Expr, v: Expr, l: Expr) -> Expr:
        term = x[r, k, b].astype("int32") * w[k, v, l, b].astype("int32")
        return te.sum(term, axis=[k, b], init=start[v, l])

    acc: Tensor = te.compute((high, wide, TILE_LANES), product, "acc")
    return te.decl_intrin(f"tiles{high}x{wide}x{steps}", acc, lowering=Tiles(high, wide, steps))


def own_lowering(intrin: TensorIntrin) -> bool:
    """Whether a processor has instructions for an intrinsic."""
    return isinstance(intrin.lowering, Dot | Tiles)
