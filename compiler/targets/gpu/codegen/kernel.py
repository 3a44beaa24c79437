"""One kernel, as the printers take it, and what all of them say of its buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.tir.arith import Ranges, simplify
from vdla.compiler.tir.ir import INT_RANGES, LOCAL, Buffer, Cast, Expr, Load, Stmt, const


@dataclass(frozen=True)
class Kernel:
    """One kernel's name, the buffers that it gets, in order, and its statements."""

    name: str
    buffers: Sequence[Buffer]
    body: Stmt

    def check_sizes(self) -> None:
        """Raises NoCodeError where an int doesn't reach all elements of a buffer."""
        limit = INT_RANGES["int32"][1]
        for buffer in self.buffers:
            if buffer.span > limit:
                raise NoCodeError(
                    f"{self.name}: expected buffers of at most {limit} elements, found "
                    f"{buffer.name} of {buffer.span}"
                )


def element_number(buffer: Buffer, indices: Sequence[Expr], ranges: Ranges) -> Expr:
    """The number of an element in its buffer's memory; an int64 where an index is.

    Args:
        ranges: the least and the greatest value of each loop variable.
    """
    dtype = "int64" if any(index.dtype == "int64" for index in indices) else "int32"
    total: Expr = const(0, dtype)
    for index, stride in zip(indices, buffer.strides, strict=True):
        total = total + index.astype(dtype) * const(stride, dtype)
    return simplify(total, ranges)


def is_unrounded(e: Expr) -> bool:
    """Whether an expression of float16, which is computed as float, may have more bits: neither a
    conversion nor memory of float16 has, but a thread's own variables do."""
    if e.dtype != "float16" or isinstance(e, Cast):
        return False
    return not isinstance(e, Load) or e.buffer.scope == LOCAL
