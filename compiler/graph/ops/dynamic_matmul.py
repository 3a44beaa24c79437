"""Products of matrices of floats that are made of integers, whose scales are measured as they run.

A factor x becomes ``rint(x / s)`` with ``s = max |x| / most``: of 8 bits with 127, of 16 with
``MOST``, whose two bytes are int8 (``wide.py``). Sums of products of bytes are exact in int32, on
every device; they become float32, are added with the weights of their bytes and multiplied by both
scales. Passes spell such a node out before anything else (``passes/dynamic.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from vdla.compiler.graph.ir import Node
from vdla.compiler.graph.ops.matmul import MatMul
from vdla.compiler.graph.ops.wide import MOST
from vdla.compiler.graph.types import Array, Shape, TensorType

MOST_OF = {8: 127, 16: MOST}  # the largest integer of so many bits
LEAST = 2.0**-100  # that a factor's largest element counts as
HALF, BYTE = 128, 256
MOST_SUMMED = (1 << 31) // (HALF * HALF) - 1  # products of bytes that an int32 holds the sum of


@dataclass(frozen=True, kw_only=True)
class DynamicMatMul(Node):
    """``a @ b`` in float32, of integers of so many ``bits``, 8 or 16, of each factor.

    ``gradient_bits`` are those of a gradient that its adjoint multiplies with a factor.
    """

    OPERANDS: ClassVar[tuple[str, ...]] = ("a", "b")

    a: str
    b: str
    bits: tuple[int, int]
    gradient_bits: int

    def result_shape(self, shapes: Sequence[Shape]) -> Shape:
        known = MatMul(name=self.name, output=self.output, a=self.a, b=self.b)
        if shapes[0][-1] > MOST_SUMMED:
            raise self.error(f"sums of {MOST_SUMMED} products at most", shapes[0][-1])
        return known.result_shape(shapes)

    def work(self, shapes: Sequence[Shape], result: Shape) -> int:
        known = MatMul(name=self.name, output=self.output, a=self.a, b=self.b)
        return known.work(shapes, result) * self.bits[0] * self.bits[1] // 64

    def evaluate(self, args: Sequence[Array], kind: TensorType) -> Array:
        (first, left), (second, right) = (
            _bytes(x, bits) for x, bits in zip(args, self.bits, strict=True)
        )
        parts = [
            np.matmul(a.astype(np.int64), b.astype(np.int64)).astype(np.float32) * weight * other
            for weight, a in left
            for other, b in right
        ]
        total = sum(parts[1:], parts[0])
        return np.asarray(total * (first * second))


def _bytes(x: Array, bits: int) -> tuple[Array, list[tuple[np.float32, Array]]]:
    """The scale of an array, and its bytes with their weights, the largest weight first."""
    most = np.float32(MOST_OF[bits])
    scale = np.maximum(np.abs(x).max(initial=0.0), np.float32(LEAST)) / most
    with np.errstate(invalid="ignore"):  # what is no number: the scale isn't, either
        whole = np.clip(np.rint(x / scale), -most, most).astype(np.int32)
    if bits == 8:
        return scale, [(np.float32(1), whole)]
    high = (whole + HALF) >> 8
    return scale, [(np.float32(BYTE), high), (np.float32(1), whole - high * BYTE)]
