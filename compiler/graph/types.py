"""Types of tensors, and the numbers that operators on integers have.

TensorType := shape dtype quant? block      block > 0: [N, ceil(C/block), H, W, block]
Quant      := scale zero_point              real = (integer - zero_point) * scale
Requant    := scale* zero low high          clip(rq(x, scale) + zero, low, high)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any

from numpy.typing import NDArray

from vdla.runtime.dtypes import STORED, dtype_of
from vdla.support.numbers import ceil_div

Array = NDArray[Any]
Shape = tuple[int, ...]
Pair = tuple[int, int]
Pads = tuple[int, int, int, int]

DTYPES = (
    "float32", "int8", "uint8", "int32", "int64",
    "float16", "float64", "bool", "int16", "uint16", "uint32", "uint64",
)  # fmt: skip
TENSOR_DTYPES = (*DTYPES, *STORED)  # what a tensor may hold; operators compute in DTYPES
RECORDS: dict[str, type] = {}  # classes of fields' values, by the names that texts have


@dataclass(frozen=True)
class Quant:
    """``real = (integer - zero_point) * scale``; one scale for the whole tensor."""

    scale: float
    zero_point: int


@dataclass(frozen=True)
class Requant:
    """Steps from a wide integer to int8: ``clip(rq(x, scale) + zero, low, high)``.

    ``scale`` holds float32 values: one for all elements, one for each channel or one for each
    operand, as the operator says; ``zero`` is the result's zero point.
    """

    scale: tuple[float, ...]
    zero: int
    low: int = -128
    high: int = 127

    @property
    def limits(self) -> tuple[int, int, int]:
        """The zero point, the lowest and the highest value."""
        return self.zero, self.low, self.high

    @property
    def clips(self) -> bool:
        """Whether some int8 is out of its bounds."""
        return (self.low, self.high) != (-128, 127)

    def within(self, low: int, high: int) -> Requant:
        """A requantization that is clipped to other bounds behind its own."""
        low, high = (min(max(bound, low), high) for bound in (self.low, self.high))
        return replace(self, low=low, high=high)


RECORDS[Requant.__name__] = Requant


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor, known before it has a value. ``shape`` is the logical one, N, C, …."""

    shape: tuple[int, ...]
    dtype: str
    quant: Quant | None = None
    block: int = 0

    @property
    def physical(self) -> tuple[int, ...]:
        """The shape in memory: logical, or [N, ceil(C/block), H, W, block]."""
        if not self.block:
            return self.shape
        n, c, *image = self.shape
        h, w = image or (1, 1)
        return (n, ceil_div(c, self.block), h, w, self.block)

    @property
    def elements(self) -> int:
        """Elements that the tensor takes in memory, the padding of channel blocks included."""
        return reduce(mul, self.physical, 1)

    @property
    def nbytes(self) -> int:
        """Bytes that the tensor takes in memory, the padding of channel blocks included."""
        return self.elements * dtype_of(self.dtype).itemsize
