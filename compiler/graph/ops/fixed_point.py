"""Functions of recurrent cells in fixed point: what arrays, expressions and instructions compute.

A sum in front of a function, a **preactivation**, is an int32 of ``STEP``-ths from -16 to 16. The
sigmoid is linear between 257 points: ``VALUES`` has it at each of the first 256, ``SLOPES`` the way
to the next. Results are parts of ``ONE``. A tanh is a sigmoid of twice as much, ``tanh(x) = 2
σ(2x) - 1``, so that one pair of tables does for both. No intermediate value leaves an int32.

Errors, in real numbers: the sigmoid's is at most 1/4800, the tanh's 1/2400.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np

from vdla.compiler import te
from vdla.compiler.graph.types import Array
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr

STEP = 1 << 11  # of preactivations and of an LSTM's cell
ONE_BITS = 15
ONE = 1 << ONE_BITS  # of gates and of a GRU's state
LOW, HIGH = -(1 << 15), (1 << 15) - 1  # of all that is kept
BETWEEN_BITS = 8  # of a preactivation that say where between two points it lies
LEAST = -128  # the point that comes first
LOW_BITS = 255
REACH = 16.0  # preactivations beyond are as good as this

_POINTS = np.arange(LEAST, -LEAST + 1) * (REACH / -LEAST)
_CURVE = np.minimum(np.rint(ONE / (1 + np.exp(-_POINTS))), HIGH).astype(np.int32)
VALUES = _CURVE[:-1].astype(np.int16)
SLOPES = np.diff(_CURVE).astype(np.int16)
VALUES_RANGE, SLOPES_RANGE = (0, HIGH), (0, int(SLOPES.max()))

V = TypeVar("V")


class Arithmetic(ABC, Generic[V]):
    """The operations on int32 that the functions below are made of."""

    @abstractmethod
    def add(self, x: V, y: V) -> V:
        """``x + y``."""

    @abstractmethod
    def subtract(self, x: V, y: V) -> V:
        """``x - y``."""

    @abstractmethod
    def multiply(self, x: V, y: V) -> V:
        """``x * y``; ``y`` has at most 25 bits."""

    @abstractmethod
    def increase(self, x: V, number: int) -> V:
        """``x + number``."""

    @abstractmethod
    def left(self, x: V, bits: int) -> V:
        """``x << bits``."""

    @abstractmethod
    def right(self, x: V, bits: int) -> V:
        """``x >> bits``, rounded down."""

    @abstractmethod
    def limited(self, x: V) -> V:
        """``clip(x, LOW, HIGH)``."""

    @abstractmethod
    def value(self, point: V) -> V:
        """``VALUES[point - LEAST]``."""

    @abstractmethod
    def slope(self, point: V) -> V:
        """``SLOPES[point - LEAST]``."""

    # The functions ------------------------------------------------------------------------------

    def rounded(self, x: V, bits: int) -> V:
        """``x / 2**bits``, rounded to the nearest."""
        return self.right(self.increase(x, 1 << (bits - 1)), bits)

    def sigmoid(self, x: V) -> V:
        """``1 / (1 + exp(-x))`` of a preactivation, in parts of ``ONE``."""
        point = self.right(x, BETWEEN_BITS)
        between = self.subtract(x, self.left(point, BETWEEN_BITS))
        way = self.multiply(self.slope(point), between)
        return self.add(self.value(point), self.rounded(way, BETWEEN_BITS))

    def tanh(self, x: V) -> V:
        """``tanh(x)`` of a preactivation, in parts of ``ONE``."""
        twice = self.sigmoid(self.limited(self.left(x, 1)))
        return self.increase(self.left(twice, 1), -ONE)


class Arrays(Arithmetic[Array]):
    """Operations on arrays of int64, in which nothing overflows."""

    def add(self, x: Array, y: Array) -> Array:
        return np.asarray(x + y)

    def subtract(self, x: Array, y: Array) -> Array:
        return np.asarray(x - y)

    def multiply(self, x: Array, y: Array) -> Array:
        return np.asarray(x * y)

    def increase(self, x: Array, number: int) -> Array:
        return np.asarray(x + number)

    def left(self, x: Array, bits: int) -> Array:
        return np.asarray(x << bits)

    def right(self, x: Array, bits: int) -> Array:
        return np.asarray(x >> bits)

    def limited(self, x: Array) -> Array:
        return np.clip(x, LOW, HIGH)

    def value(self, point: Array) -> Array:
        return np.asarray(VALUES[point - LEAST], np.int64)

    def slope(self, point: Array) -> Array:
        return np.asarray(SLOPES[point - LEAST], np.int64)


def by_low_bits(table: Array) -> Array:
    """A table in the order of the points' low 8 bits."""
    return np.roll(table, LEAST)


class Expressions(Arithmetic[Expr]):
    """Operations on elements; ``constant`` makes a tensor of a table that a function reads."""

    def __init__(self, constant: Callable[[str, Array], Tensor]) -> None:
        self.values = constant("values", by_low_bits(VALUES))
        self.slopes = constant("slopes", by_low_bits(SLOPES))

    def add(self, x: Expr, y: Expr) -> Expr:
        return x + y

    def subtract(self, x: Expr, y: Expr) -> Expr:
        return x - y

    def multiply(self, x: Expr, y: Expr) -> Expr:
        return x * y

    def increase(self, x: Expr, number: int) -> Expr:
        return x + number

    def left(self, x: Expr, bits: int) -> Expr:
        return x * (1 << bits)

    def right(self, x: Expr, bits: int) -> Expr:
        return x >> bits

    def limited(self, x: Expr) -> Expr:
        return te.minimum(te.maximum(x, LOW), HIGH)

    def value(self, point: Expr) -> Expr:
        return self.values[point & LOW_BITS].astype("int32")

    def slope(self, point: Expr) -> Expr:
        return self.slopes[point & LOW_BITS].astype("int32")
