"""Steps of recurrent layers in integers: preactivations of gates, cells, states.

Data and states that are multiplied with weights are int8, all else is int32 in fixed point, as
``fixed_point.py`` says: preactivations and an LSTM's cell in ``STEP``-ths, a GRU's state in parts
of ``ONE``. The gates of a vector are rows of their own: row ``g + G * n`` is gate g of vector n, so
that gates begin with a block of channels whatever their size is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.express import requantized
from vdla.compiler.graph.ir import Node, Recipe
from vdla.compiler.graph.numbers import requantize
from vdla.compiler.graph.ops.fixed_point import (
    HIGH,
    LOW,
    ONE_BITS,
    STEP,
    Arithmetic,
    Arrays,
    Expressions,
    V,
)
from vdla.compiler.graph.types import Array, Requant, Shape, TensorType
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr
from vdla.isa.numbers import pack_scale

MOST_FACTOR = 1 << 21
SUM_BITS = 17  # of a sum that is multiplied with its factor
PRODUCT_BITS = 30
CELL_BITS = STEP.bit_length() - 1


# Preactivations ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class QGates(Node):
    """``clip(((Σ_i data[n, i] * weight[g, h, i] + bias[g, h]) >> before) * factor[g, h] / 2**after
    + addend)``, rounded to the nearest: int32 [N * G, H] of int8 [N, I].

    ``addend`` has the result's shape. The data's zero point and what rounds the first shift are in
    the bias. :func:`factors_of` gives factors and shifts with which no sum leaves an int32.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("data", "weight", "bias", "factor", "addend")
    PARAMETERS: ClassVar[tuple[str, ...]] = ("weight", "bias", "factor")
    READS: ClassVar[frozenset[str]] = frozenset({"int8", "int32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int32"})

    data: str
    weight: str
    bias: str
    factor: str
    before: int
    after: int
    addend: str | None = None

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        data, weight, bias, factor, *others = shapes
        if len(weight) != 3 or len(data) != 2 or data[1] != weight[2]:
            raise self.error("data [N, I] and weights [G, H, I]", f"{list(data)}, {list(weight)}")
        gates, hidden, _ = weight
        if bias != (gates, hidden) or factor != bias:
            raise self.error(f"biases and factors as {[gates, hidden]}", f"{list(bias)}")
        result = data[0] * gates, hidden
        if others and others[0] != result:
            raise self.error(f"an addend of shape {list(result)}", list(others[0]))
        return result

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        return 2 * prod(result) * shapes[0][1]

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        data, weight, bias, factor, *others = (x.astype(np.int64) for x in args)
        exact = data.astype(np.float64) @ weight.reshape(-1, weight.shape[-1]).T
        sums = exact.astype(np.int64).reshape(-1, *bias.shape) + bias
        scaled = (sums >> self.before) * factor
        total = Arrays().rounded(scaled, self.after).reshape(kind.shape)
        return np.clip(total + others[0] if others else total, LOW, HIGH).astype(np.int32)

    def express(self, recipe: Recipe) -> Tensor:
        data, weight = recipe.read(self.data), recipe.read(self.weight)
        addend = recipe.read(self.addend) if self.addend else None
        bias, factor = recipe.read(self.bias), recipe.read(self.factor)
        gates, step = weight.shape[0], te.reduce_axis((0, weight.shape[2]), "i")

        def sums(r: Expr, h: Expr) -> Expr:
            n, g = te.floordiv(r, gates), te.floormod(r, gates)
            product = data[n, step].astype("int32") * weight[g, h, step].astype("int32")
            return te.sum(product, axis=step, init=bias[g, h])

        acc = te.compute(recipe.out_shape, sums, "acc")

        def value(r: Expr, h: Expr) -> Expr:
            scaled = (acc[r, h] >> self.before) * factor[te.floormod(r, gates), h]
            total = (scaled + (1 << (self.after - 1))) >> self.after
            more = total if addend is None else total + addend[r, h]
            return te.minimum(te.maximum(more, LOW), HIGH)

        return te.compute(recipe.out_shape, value, "preactivations")


def factors_of(scale: Array, bounds: Array) -> tuple[int, int, Array]:
    """``before``, ``after`` and the factors of :class:`QGates`.

    A channel's error is at most half a unit before the first shift, half a step after the second,
    and half a factor's last bit for the largest sum.

    Args:
        scale: what a sum's unit is in real numbers, one for each channel.
        bounds: what no sum of a channel exceeds.

    Raises:
        ValueError: sums are larger than fixed point holds.
    """
    before = max(int(bounds.max()).bit_length() - SUM_BITS, 0)
    most = (bounds.astype(np.int64) >> before) + 1
    for after in range(PRODUCT_BITS, 0, -1):
        exact = scale.astype(np.float64) * STEP * 2.0 ** (before + after)
        factors = np.rint(exact)
        if factors.max() < MOST_FACTOR and (most * factors).max() < 1 << PRODUCT_BITS:
            return before, after, factors.astype(np.int32)
    raise ValueError(f"expected scales of sums below {scale.max():g}")


# What follows them, element by element ----------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Cellwise(Node, operator=False):
    """An operator on elements of vectors [N, H], and on the gates that belong to them.

    ``GATES`` has for each operand how many gates it has of a vector, 1 for vectors themselves.
    Where ``requant`` is given, the result is int8.
    """

    READS: ClassVar[frozenset[str]] = frozenset({"int32"})
    WRITES: ClassVar[frozenset[str]] = frozenset({"int32"})
    GATES: ClassVar[dict[str, int]]

    requant: Requant | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of gates that each operand has of a vector, in the order of ``inputs``."""
        return tuple(n for key, n in self.GATES.items() if getattr(self, key) is not None)

    @classmethod
    @abstractmethod
    def function(cls, of: Arithmetic[V], gates: Sequence[Sequence[V]]) -> V:
        """The result before it is quantized, of each operand's gates."""

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        counts = self.counts
        rows, hidden = shapes[0]
        result = rows // counts[0], hidden
        for shape, count in zip(shapes, counts, strict=True):
            if shape != (result[0] * count, hidden):
                raise self.error(f"{count} rows of {hidden} for each vector", list(shape))
        return result

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        gates = [
            list(np.moveaxis(x.astype(np.int64).reshape(-1, count, x.shape[1]), 1, 0))
            for x, count in zip(args, self.counts, strict=True)
        ]
        value = self.function(Arrays(), gates)
        if self.requant is None:
            return value.astype(np.int32)
        return requantize(value, pack_scale(*self.requant.scale), *self.requant.limits)

    def express(self, recipe: Recipe) -> Tensor:
        tensors = [recipe.read(name) for name in self.inputs]
        of, requant = Expressions(recipe.constant), self.requant

        def value(n: Expr, h: Expr) -> Expr:
            gates = [
                [tensor[n * count + g, h].astype("int32") for g in range(count)]
                for tensor, count in zip(tensors, self.counts, strict=True)
            ]
            result = self.function(of, gates)
            if requant is None:
                return result
            word = te.const(pack_scale(*requant.scale), "int32")
            return requantized(result, word, *requant.limits)

        return te.compute(recipe.out_shape, value, "cells")


@dataclass(frozen=True, kw_only=True)
class QLstmCell(Cellwise):
    """``σ(forget) * cell + σ(input) * tanh(new)`` of gates in ONNX's order: input, output, forget,
    new."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("gates", "cell")
    GATES: ClassVar[dict[str, int]] = {"gates": 4, "cell": 1}

    gates: str
    cell: str

    @classmethod
    def function(cls, of: Arithmetic[V], gates: Sequence[Sequence[V]]) -> V:
        (take, _, keep, new), (cell,) = gates
        kept = of.multiply(of.sigmoid(keep), cell)
        taken = of.multiply(of.sigmoid(take), of.tanh(new))
        total = of.add(kept, of.right(taken, ONE_BITS - CELL_BITS))
        return of.limited(of.rounded(total, ONE_BITS))


@dataclass(frozen=True, kw_only=True)
class QLstmState(Cellwise):
    """``σ(output) * tanh(cell)`` as int8; ``requant.scale`` is what a part of ``ONE**2`` is of a
    step."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("gates", "cell")
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8"})
    GATES: ClassVar[dict[str, int]] = {"gates": 4, "cell": 1}

    gates: str
    cell: str
    requant: Requant = field()

    @classmethod
    def function(cls, of: Arithmetic[V], gates: Sequence[Sequence[V]]) -> V:
        (_, show, _, _), (cell,) = gates
        return of.multiply(of.sigmoid(show), of.tanh(cell))


@dataclass(frozen=True, kw_only=True)
class QGruReset(Cellwise):
    """``σ(reset) * state`` as int8, of gates in ONNX's order: update, reset."""

    OPERANDS: ClassVar[tuple[str, ...]] = ("gates", "state")
    WRITES: ClassVar[frozenset[str]] = frozenset({"int8"})
    GATES: ClassVar[dict[str, int]] = {"gates": 2, "state": 1}

    gates: str
    state: str
    requant: Requant = field()

    @classmethod
    def function(cls, of: Arithmetic[V], gates: Sequence[Sequence[V]]) -> V:
        (_, reset), (state,) = gates
        return of.multiply(of.sigmoid(reset), state)


@dataclass(frozen=True, kw_only=True)
class QGruState(Cellwise):
    """``new + σ(update) * (state - new)`` of the gates update and reset.

    ``new`` is the tanh of what the data add, ``fresh``, and of ``σ(reset) * inner`` where ``inner``
    is given: where the reset gate comes behind the state's weights.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("gates", "fresh", "state", "inner")
    GATES: ClassVar[dict[str, int]] = {"gates": 2, "fresh": 1, "state": 1, "inner": 1}

    gates: str
    fresh: str
    state: str
    inner: str | None = None

    @classmethod
    def function(cls, of: Arithmetic[V], gates: Sequence[Sequence[V]]) -> V:
        (update, reset), (fresh,), (state,), *inner = gates
        total = fresh
        if inner:
            seen = of.rounded(of.multiply(of.sigmoid(reset), inner[0][0]), ONE_BITS)
            total = of.limited(of.add(fresh, seen))
        new = of.tanh(total)
        way = of.multiply(of.sigmoid(update), of.subtract(state, new))
        return of.add(new, of.rounded(way, ONE_BITS))


@dataclass(frozen=True, kw_only=True)
class QNarrow(Cellwise):
    """A cell or a state as int8."""

    WRITES: ClassVar[frozenset[str]] = frozenset({"int8"})
    GATES: ClassVar[dict[str, int]] = {"data": 1}

    data: str
    requant: Requant = field()

    @classmethod
    def function(cls, of: Arithmetic[V], gates: Sequence[Sequence[V]]) -> V:
        return gates[0][0]
