"""Tensor cores as NVIDIA's manual describes them: which elements a lane has, and the product.

Written from PTX ISA 9.2, sections 9.7.14.5.8, "Matrix Fragments for mma.m16n8k16 with floating
point type", and 9.7.14.5.10, "Matrix Fragments for mma.m16n8k32", formula by formula and with the
manual's names. It shares nothing with the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Place = Callable[[int, int], tuple[int, int]]  # (lane, item) to (row, column)
LANES = 32


def group_of(lane: int) -> tuple[int, int]:
    """groupID and threadID_in_group."""
    return lane >> 2, lane % 4


def a_f16(lane: int, i: int) -> tuple[int, int]:
    """The element a_i of .f16, i from 0 to 7."""
    group, thread = group_of(lane)
    row = group if 0 <= i < 2 or 4 <= i < 6 else group + 8
    column = thread * 2 + (i & 0x1) if i < 4 else thread * 2 + (i & 0x1) + 8
    return row, column


def b_f16(lane: int, i: int) -> tuple[int, int]:
    """The element b_i of .f16, i from 0 to 3."""
    group, thread = group_of(lane)
    row = thread * 2 + (i & 0x1) if i < 2 else thread * 2 + (i & 0x1) + 8
    return row, group


def a_s8(lane: int, i: int) -> tuple[int, int]:
    """The element a_i of .s8, i from 0 to 15."""
    group, thread = group_of(lane)
    row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
    column = thread * 4 + (i & 0x3) if i < 8 else thread * 4 + (i & 0x3) + 16
    return row, column


def b_s8(lane: int, i: int) -> tuple[int, int]:
    """The element b_i of .s8, i from 0 to 7."""
    group, thread = group_of(lane)
    row = thread * 4 + (i & 0x3) if i < 4 else thread * 4 + (i & 0x3) + 16
    return row, group


def accumulator(lane: int, i: int) -> tuple[int, int]:
    """The element c_i or d_i of .f32 and of .s32, i from 0 to 3."""
    group, thread = group_of(lane)
    row = group if i < 2 else group + 8
    return row, thread * 2 + (i & 0x1)


@dataclass(frozen=True)
class Shape:
    """An instruction's matrices; ``a_items`` and ``b_items`` are how many elements a lane has."""

    depth: int
    factor: str
    total: str
    a: Place
    b: Place
    a_items: int
    b_items: int

    def places(self) -> dict[str, list[list[tuple[int, int]]]]:
        """Row and column of each item of each lane, by matrix."""
        deals = {"A": (self.a, self.a_items), "B": (self.b, self.b_items), "C": (accumulator, 4)}
        return {
            matrix: [[place(lane, i) for i in range(items)] for lane in range(LANES)]
            for matrix, (place, items) in deals.items()
        }

    def product(self, a: Sequence, b: Sequence, c: Sequence) -> np.ndarray:
        """What each lane gets, [lane, 4], of what each lane brings: items of A, of B and of C."""
        places = self.places()
        left = _whole(places["A"], a, (16, self.depth), self.total)
        right = _whole(places["B"], b, (self.depth, 8), self.total)
        found = left @ right + _whole(places["C"], c, (16, 8), self.total)
        return np.array([[found[at] for at in lane] for lane in places["C"]])


def _whole(places, items, shape, dtype) -> np.ndarray:
    """A matrix of its elements in the lanes."""
    matrix = np.full(shape, 99, dtype)
    for own, values in zip(places, items, strict=True):
        for at, value in zip(own, values, strict=True):
            matrix[at] = value
    return matrix


SHAPES = {
    "mma_f16": Shape(16, "float16", "float32", a_f16, b_f16, 8, 4),
    "mma_s8": Shape(32, "int8", "int32", a_s8, b_s8, 16, 8),
}
