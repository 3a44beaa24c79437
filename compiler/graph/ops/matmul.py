"""Products of tensors, summed over axes that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import mul
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.axes import RESULT, Axes
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.ops.elementwise import wide, widened
from vdla.compiler.graph.ops.transpose import Transpose
from vdla.compiler.graph.types import DTYPES, Array, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

NUMBERS = frozenset(DTYPES) - {"bool"}


@dataclass(frozen=True, kw_only=True)
class MatMul(Node):
    """``Σ_k a[…, i, k] * b[…, k, j]``, the axes before the last two broadcast as numpy's.

    Of float16 it is computed in float32.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")
    READS: ClassVar[frozenset[str]] = NUMBERS
    WRITES: ClassVar[frozenset[str]] = NUMBERS

    a: str
    b: str

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        a, b = shapes
        fits = min(len(a), len(b)) > 1 and a[-1] == b[-2]
        try:
            batch = np.broadcast_shapes(a[:-2], b[:-2]) if fits else ()
        except ValueError:
            fits = False
        if not fits:
            raise self.error("matrices that fit each other", f"{list(a)} and {list(b)}")
        return (*batch, a[-2], b[-1])

    def aligned_axes(self, shapes: Sequence[Shape], result: Shape) -> Axes:
        """Rows and columns with the result's, and the two axes that are summed over."""
        last = len(result) - 1
        if {len(shape) for shape in shapes} != {len(result)}:
            return ()
        summed = frozenset({(0, last), (1, last - 1)})
        return (
            summed,
            frozenset({(0, last - 1), (RESULT, last - 1)}),
            frozenset({(1, last), (RESULT, last)}),
        )

    def absorbs(self, maker: Node) -> bool:
        return isinstance(maker, Transpose)

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return 2 * prod(result) * shapes[0][-1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.asarray(np.matmul(widened(args[0]), widened(args[1]))).astype(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        a = recipe.read(self.a)
        b = recipe.read(self.b)
        step = te.reduce_axis((0, a.shape[-1]), "k")

        def value(*i: Expr) -> Expr:
            left = a[(*spread(a.shape[:-2], i[:-2]), i[-2], step)]
            right = b[(*spread(b.shape[:-2], i[:-2]), step, i[-1])]
            return te.sum(wide(left) * wide(right), axis=step)

        return narrowed(recipe, te.compute(recipe.out_shape, value, "product"))


@dataclass(frozen=True, kw_only=True)
class Einsum(Node):
    """The product of ``parts``, whose axes the letters of ``equation`` name, summed over those that
    its right side lacks: ``"ij,jk->ik"``."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("parts",)
    READS: ClassVar[frozenset[str]] = NUMBERS
    WRITES: ClassVar[frozenset[str]] = NUMBERS

    parts: tuple[str, ...]
    equation: str

    @property
    def terms(self) -> tuple[list[str], str]:
        """The letters of every part, and the result's."""
        left, _, right = self.equation.partition("->")
        return left.split(","), right

    def sizes(self, shapes: Sequence[Shape]) -> dict[str, int]:
        """The size of each letter's axis."""
        result: dict[str, int] = {}
        terms, right = self.terms
        if [len(term) for term in terms] != [len(shape) for shape in shapes]:
            raise self.error(f"parts as in {self.equation}", [list(s) for s in shapes])
        for term, shape in zip(terms, shapes, strict=True):
            for letter, size in zip(term, shape, strict=True):
                if result.setdefault(letter, size) != size:
                    raise self.error(f"{result[letter]} elements along {letter}", size)
        if not set(right) <= result.keys():
            raise self.error("a right side of letters of the left one", self.equation)
        return result

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        sizes = self.sizes(shapes)
        return tuple(sizes[letter] for letter in self.terms[1])

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return len(self.parts) * prod(self.sizes(shapes).values())

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        return np.asarray(np.einsum(self.equation, *map(widened, args))).astype(kind.dtype)

    def express(self, recipe: Recipe) -> Tensor:
        tensors = [recipe.read(name) for name in self.parts]
        sizes = self.sizes([recipe.shape(name) for name in self.parts])
        terms, right = self.terms
        steps = {a: te.reduce_axis((0, n), a) for a, n in sizes.items() if a not in right}

        def value(*i: Expr) -> Expr:
            index = {**dict(zip(right, i, strict=True)), **steps}
            factors = [
                wide(tensor[tuple(index[letter] for letter in term)])
                for tensor, term in zip(tensors, terms, strict=True)
            ]
            product = reduce(mul, factors)
            return te.sum(product, axis=list(steps.values())) if steps else product

        return narrowed(recipe, te.compute(recipe.out_shape, value, "product"))


def narrowed(recipe: Recipe, tensor: Tensor) -> Tensor:
    """A tensor in the type of the result."""
    if tensor.dtype == recipe.out_dtype:
        return tensor
    return te.compute(recipe.out_shape, lambda *i: tensor[i].astype(recipe.out_dtype), "narrowed")


def spread(sizes: Shape, stack: Sequence[Expr]) -> list[Expr]:
    """The index of a matrix in a stack that is broadcast."""
    inner = stack[len(stack) - len(sizes) :]
    return [te.const(0, "int32") if n == 1 else i for n, i in zip(sizes, inner, strict=True)]
