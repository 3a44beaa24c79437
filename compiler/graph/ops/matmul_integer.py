"""Products of matrices of bytes with zero points, as dynamic quantization has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.types import Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

BYTES = frozenset({"int8", "uint8"})


@dataclass(frozen=True, kw_only=True)
class MatMulInteger(Node):
    """``Σ_k (a[…, i, k] - a_zero) * (b[k, j] - b_zero[j])`` in int32, modulo 2**32.

    ``a_zero`` is [1], ``b_zero`` [1] or [J]; ``b`` and ``b_zero`` are constants.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b", "a_zero", "b_zero")
    READS: ClassVar[frozenset[str]] = BYTES
    WRITES: ClassVar[frozenset[str]] = frozenset({"int32"})

    a: str
    b: str
    a_zero: str
    b_zero: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        a, b, a_zero, b_zero = shapes
        if len(a) < 2 or len(b) != 2 or a[-1] != b[0]:
            raise self.error("matrices that fit each other", f"{list(a)} and {list(b)}")
        if a_zero != (1,) or b_zero not in ((1,), (b[1],)):
            raise self.error(
                f"zero points of shapes [1] and [1] or [{b[1]}]", f"{list(a_zero)}, {list(b_zero)}"
            )
        return (*a[:-1], b[1])

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return 2 * prod(result) * shapes[0][-1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        a, b, a_zero, b_zero = (x.astype(np.int64) for x in args)
        return np.asarray(np.matmul(a - a_zero, b - b_zero)).astype(np.int32)

    def express(self, recipe: Recipe) -> Tensor:
        a, b = recipe.read(self.a), recipe.read(self.b)
        a_zero, b_zero = recipe.read(self.a_zero), recipe.read(self.b_zero)
        step, one_zero = te.reduce_axis((0, a.shape[-1]), "k"), b_zero.shape == (1,)

        def value(*i: Expr) -> Expr:
            left = a[(*i[:-1], step)].astype("int32") - a_zero[0].astype("int32")
            zero = b_zero[0 if one_zero else i[-1]].astype("int32")
            return te.sum(left * (b[step, i[-1]].astype("int32") - zero), axis=step)

        return te.compute(recipe.out_shape, value, "out")

    def centered_rows(self, a: Tensor, a_zero: Tensor) -> Tensor:
        """Σ_k (a[…, i, k] - a_zero) of each row."""
        step = te.reduce_axis((0, a.shape[-1]), "k")

        def row(*i: Expr) -> Expr:
            value = a[(*i, step)].astype("int32") - a_zero[0].astype("int32")
            return te.sum(value, axis=step)

        return te.compute(a.shape[:-1], row, "left")
