"""Arrays in memory.

Grammar::

    Buffer ::= Buffer(name, shape: int*, dtype, scope, copies: int, value_range, alignments)
                 scope: "global" | "shared" | "local" | "vdla.acc" | ...;
                 copies: what steps of a loop take in turn;
                 value_range: (int, int) | None, what the caller promises of a parameter;
                 alignments: (dimension, factor, offset)*, its stride is offset modulo factor
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from vdla.compiler.tir.ir.dtypes import DTYPES, INT_RANGES
from vdla.compiler.tir.ir.error import TermError

GLOBAL, SHARED, LOCAL = "global", "shared", "local"


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A row-major array in some memory. Two buffers are the same only if they are one object.

    Each time its Alloc is reached the buffer is a new one.

    Attributes:
        name: in the program's text; not necessarily unique.
        shape: the length of each dimension.
        dtype: of the elements.
        scope: the memory: ``"global"``; ``"shared"`` by the threads of a group; ``"local"`` to a
            thread; or a target's own, such as ``"vdla.acc"``.
        copies: how many of the new ones have a place of their own in memory before the first one's
            is used again.
        value_range: bounds of a parameter's elements, both ends included; None where the dtype
            alone bounds them.
        alignments: (dimension, factor, offset) where a dimension's stride is widened until it is
            ``offset`` modulo ``factor``, in elements; elsewhere elements lie densely.

    Raises:
        TermError: a dtype that isn't known, a length that isn't positive, or a range or an
            alignment that doesn't fit.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str = "global"
    copies: int = 1
    value_range: tuple[int, int] | None = None
    alignments: tuple[tuple[int, int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise TermError(
                f"buffer {self.name}: expected a dtype of {', '.join(DTYPES)}, found {self.dtype!r}"
            )
        if any(not isinstance(n, int) or n < 1 for n in self.shape):
            raise TermError(
                f"buffer {self.name}: expected a shape of positive ints, found {self.shape}"
            )
        if self.value_range is not None:
            low, high = INT_RANGES.get(self.dtype, (1, 0))
            if not low <= self.value_range[0] <= self.value_range[1] <= high:
                raise TermError(
                    f"buffer {self.name}: expected a value_range (low, high) within "
                    f"{self.dtype}, found {self.value_range}"
                )
        for dim, factor, offset in self.alignments:
            if not 0 <= dim < len(self.shape) or not 0 <= offset < factor:
                raise TermError(
                    f"buffer {self.name}: expected alignments (dimension, factor, offset "
                    f"< factor) of its {len(self.shape)} dimensions, found "
                    f"{(dim, factor, offset)}"
                )

    @property
    def size(self) -> int:
        """Number of the array's elements."""
        total = 1
        for n in self.shape:
            total *= n
        return total

    @property
    def strides(self) -> tuple[int, ...]:
        """Number of elements from one index of each dimension to the next."""
        return _layout(self.shape, self.alignments)[0]

    @property
    def span(self) -> int:
        """Number of elements that its memory holds, those between rows included."""
        return _layout(self.shape, self.alignments)[1]


@lru_cache
def _layout(
    shape: tuple[int, ...], alignments: tuple[tuple[int, int, int], ...]
) -> tuple[tuple[int, ...], int]:
    """(strides, span) of a buffer."""
    wanted = {dim: (factor, offset) for dim, factor, offset in alignments}
    strides: list[int] = []
    stride = 1
    for dim in reversed(range(len(shape))):
        factor, offset = wanted.get(dim, (1, 0))
        stride += (offset - stride) % factor
        strides.append(stride)
        stride *= shape[dim]
    return tuple(reversed(strides)), stride
