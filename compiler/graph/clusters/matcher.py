"""Float operators that a tensor is made of: normalizations and softmax in all their spellings.

normalization  (x - mean) / √(mean((x - mean)²) + epsilon) * gamma + beta
               x * factor + (beta - mean * factor), factor = gamma / √(…)
               the RMS form has no mean, and factor and offset may be missing
softmax        exp(x - max(x)) / Σ exp(x - max(x)), or without the maximum
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vdla.compiler.graph.neighbours import Neighbours
from vdla.compiler.graph.ops.add import Add
from vdla.compiler.graph.ops.elementwise import Binary, Unary
from vdla.compiler.graph.ops.reduce import Reduce
from vdla.compiler.graph.ops.softmax import Softmax
from vdla.compiler.graph.types import Array, Shape


@dataclass(frozen=True)
class Deviation:
    """A normalization of ``data`` along ``axes``; ``gamma`` and ``beta`` have one value for each of
    their elements. ``centered`` says whether the mean is taken away."""

    data: str
    axes: tuple[int, ...]
    centered: bool
    epsilon: float
    gamma: Array
    beta: Array


@dataclass(frozen=True)
class Shares:
    """A softmax of ``data`` along ``axis``."""

    data: str
    axis: int


def deviation_of(name: str, around: Neighbours) -> Deviation | None:
    """The normalization that a tensor is; None where it is none."""
    match = _Matcher(around)
    parts = match.factored(name) or match.scaled(name)
    if parts is None:
        return None
    above, under, gamma, beta = parts
    square, epsilon = match.operand(under, "add")
    mean = match.reduction(square, "mean")
    if mean is None or epsilon is None or epsilon.size > 1:
        return None
    if not match.squares(mean.data, above):
        return None
    x, axes = match.difference(above) or (above, mean.axes)
    shape = around.shape(x)
    factors, offsets = _along(gamma, shape, axes, 1.0), _along(beta, shape, axes, 0.0)
    if axes != mean.axes or factors is None or offsets is None:
        return None
    if not (np.isfinite(factors).all() and np.isfinite(offsets).all()):
        return None
    return Deviation(x, axes, x != above, float(epsilon.reshape(-1)[0]), factors, offsets)


def shares_of(name: str, around: Neighbours) -> Shares | None:
    """The softmax that a tensor is; None where it is none."""
    if node := around.maker(name, Softmax):
        return Shares(node.data, node.axis)
    match = _Matcher(around)
    pair = match.binary(name, "div")
    total = match.reduction(pair[1], "sum") if pair else None
    if pair is None or total is None or total.data != pair[0] or len(total.axes) != 1:
        return None
    if (x := match.unary(pair[0], "exp")) is None:
        return None
    below = match.binary(x, "sub")
    top = match.reduction(below[1], "max") if below else None
    if below and top and (top.data, top.axes) == (below[0], total.axes):
        x = below[0]
    return Shares(x, total.axes[0])


Parts = tuple[str, str, Array | None, Array | None]  # above, under the root, factor, offset


class _Matcher:
    """Asks what makes a tensor."""

    def __init__(self, around: Neighbours) -> None:
        self.around = around

    def scaled(self, name: str) -> Parts | None:
        """Parts of a normalization: the difference from a mean, what is under the root that divides
        it, and factor and offset behind."""
        value, beta = self.operand(name, "add")
        value, gamma = self.operand(value, "mul")
        quotient = self.quotient(value)
        return (*quotient, gamma, beta) if quotient else None

    def factored(self, name: str) -> Parts | None:
        """Parts of a normalization, as by ``scaled``, of x * factor + (beta - mean * factor)."""
        for first, second in _both(self.binary(name, "add")):
            product, rest = self.binary(first, "mul"), self.binary(second, "sub")
            if product is None or rest is None or rest[0] not in self.around.constants:
                continue
            for x, factor in _both(product):
                inverse, gamma = self.operand(factor, "mul")
                under = self.inverse_root(inverse)
                means = [m for m, f in _both(self.binary(rest[1], "mul")) if f == factor]
                mean = self.reduction(means[0], "mean") if means else None
                if under is None or mean is None or mean.data != x:
                    continue
                if above := self.above(x, mean.output):
                    return above, under, gamma, self.around.constants[rest[0]]
        return None

    def above(self, x: str, mean: str) -> str | None:
        """The tensor that is the difference of two others."""
        users = self.around.readers(mean)
        return next((n.output for n in users if self.binary(n.output, "sub") == (x, mean)), None)

    def binary(self, name: str, *functions: str) -> tuple[str, str] | None:
        """The operands of a function of two that makes a tensor."""
        if (node := self.around.maker(name, Add)) and "add" in functions:
            return node.a, node.b
        other = self.around.maker(name, Binary)
        return (other.a, other.b) if other and other.function in functions else None

    def operand(self, name: str, function: str) -> tuple[str, Array | None]:
        """Tensor that a constant is combined with, and the constant; the tensor itself where none
        is.
        """
        known = self.around.constants
        for value, constant in _both(self.binary(name, function)):
            if constant in known:
                return value, known[constant]
        return name, None

    def quotient(self, name: str) -> tuple[str, str] | None:
        """Tensor that is divided by a root, and the tensor that this is the root of."""
        if pair := self.binary(name, "div"):
            under = self.unary(pair[1], "sqrt")
            return (pair[0], under) if under else None
        for value, factor in _both(self.binary(name, "mul")):
            if under := self.inverse_root(factor):
                return value, under
        return None

    def inverse_root(self, name: str) -> str | None:
        """Tensor of which a tensor is the reciprocal root; None where it isn't one."""
        if root := self.unary(name, "reciprocal"):
            return self.unary(root, "sqrt")
        base, exponent = self.operand(name, "pow")
        if exponent is not None and bool((exponent == -0.5).all()):
            return base
        pair, known = self.binary(name, "div"), self.around.constants
        if pair and pair[0] in known and bool((known[pair[0]] == 1).all()):
            return self.unary(pair[1], "sqrt")
        return None

    def unary(self, name: str, function: str) -> str | None:
        """Tensor that a function of one operand has made a tensor of; None for another function."""
        node = self.around.maker(name, Unary)
        return node.data if node and node.function == function else None

    def reduction(self, name: str, function: str) -> Reduce | None:
        """The reduction that a tensor is, whose axes stay."""
        node = self.around.maker(name, Reduce)
        return node if node and node.function == function and node.keepdims else None

    def squares(self, name: str, of: str) -> bool:
        """Whether a tensor is the square of another one."""
        if self.binary(name, "mul") == (of, of):
            return True
        base, exponent = self.operand(name, "pow")
        return base == of and exponent is not None and bool((exponent == 2).all())

    def difference(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """Tensor whose difference from its own mean a tensor is, and the axes of that mean."""
        pair = self.binary(name, "sub")
        mean = self.reduction(pair[1], "mean") if pair else None
        return (pair[0], mean.axes) if pair and mean and mean.data == pair[0] else None


def _both(pair: tuple[str, str] | None) -> list[tuple[str, str]]:
    """Two operands in both orders."""
    return [pair, pair[::-1]] if pair else []


def _along(value: Array | None, shape: Shape, axes: Sequence[int], empty: float) -> Array | None:
    """A constant that a tensor is combined with as one value for each element along some axes;
    None where it varies along others."""
    sizes = tuple(size if n in axes else 1 for n, size in enumerate(shape))
    terms = np.asarray(empty if value is None else value, np.float64)
    if any(a != b for a, b in zip(terms.shape[::-1], sizes[::-1], strict=False) if a != 1):
        return None
    return np.broadcast_to(terms, sizes).reshape(-1).copy()
