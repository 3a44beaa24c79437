"""Between float32 and the types that are only stored: bfloat16, and those of at most 8 bits.

Both operators work on the bits of their operand: a float32 is read and written as a uint32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.runtime.dtypes import STORED, dtype_of

CODES = 1 << 16  # how many patterns the upper half of a float32 has
QUIET_NAN = 0x7FC0  # of bfloat16


@dataclass(frozen=True, kw_only=True)
class Encode(Node):
    """float32 as elements of a stored type.

    bfloat16 is rounded to the nearest, ties to even. Of a type of at most 8 bits, ``codes`` has the
    byte for each upper half of a float32, whose last bit is set where the lower half isn't 0. These
    16 bits suffice to round correctly to any type of at most 8 bits.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "codes")
    READS: ClassVar[frozenset[str]] = frozenset({"float32", "uint8"})
    WRITES: ClassVar[frozenset[str]] = frozenset(STORED)

    data: str
    codes: str | None = None

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        if len(shapes) > 1 and shapes[1] != (CODES,):
            raise self.error(f"{CODES} codes", list(shapes[1]))
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        if self.codes is None:
            with np.errstate(all="ignore"):
                return args[0].astype(dtype_of(kind.dtype))
        bits = np.ascontiguousarray(args[0]).reshape(args[0].shape).view(np.uint32)
        upper = bits >> 16 | ((bits & 0xFFFF) != 0).astype(np.uint32)
        return np.asarray(args[1][upper]).view(dtype_of(kind.dtype))

    def express(self, recipe: Recipe) -> Tensor:
        bits = recipe.bits(self.data)
        if self.codes is None:
            return te.compute(recipe.out_shape, lambda *i: _bfloat16(bits[i]), "encoded")
        codes = recipe.read(self.codes)

        def value(*i: Expr) -> Expr:
            whole = bits[i]
            lower = whole & te.const(0xFFFF, "uint32")
            more = te.minimum(lower, te.const(1, "uint32"))
            upper = whole >> te.const(16, "uint32") | more
            return codes[upper.astype("int32")]

        return te.compute(recipe.out_shape, value, "encoded")


def _bfloat16(bits: Expr) -> Expr:
    """The bits of the bfloat16 that is nearest to a float32."""

    def number(value: int) -> Expr:
        return te.const(value, "uint32")

    upper = bits >> number(16)
    odd = upper & number(1)
    nearest = (bits + number(0x7FFF) + odd) >> number(16)
    nan = (bits & number(0x7FFFFFFF)) > number(0x7F800000)
    sign = upper & number(0x8000)
    return te.select(nan, sign | number(QUIET_NAN), nearest).astype("uint16")


@dataclass(frozen=True, kw_only=True)
class Decode(Node):
    """Elements of a stored type as float32, which is exact."""

    READS: ClassVar[frozenset[str]] = frozenset(STORED)

    data: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return args[0].astype(np.float32)

    def express(self, recipe: Recipe) -> Tensor:
        bits = recipe.bits(self.data)
        if bits.dtype == "uint16":
            half = te.const(16, "uint32")
            return te.compute(
                recipe.out_shape, lambda *i: bits[i].astype("uint32") << half, "decoded"
            )
        every = np.arange(256, dtype=np.uint8).view(dtype_of(recipe.dtype(self.data)))
        numbers = recipe.constant("numbers", every.astype(np.float32))
        return te.compute(recipe.out_shape, lambda *i: numbers[bits[i].astype("int32")], "decoded")
