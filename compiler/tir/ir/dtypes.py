"""The types of values.

Grammar::

    dtype ::= bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64
"""

from __future__ import annotations

INT_RANGES: dict[str, tuple[int, int]] = {
    "bool": (0, 1),
    "int8": (-(1 << 7), (1 << 7) - 1),
    "uint8": (0, (1 << 8) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint64": (0, (1 << 64) - 1),
}
FLOATS = ("float16", "float32", "float64")
DTYPES = (*INT_RANGES, *FLOATS)


def is_float(dtype: str) -> bool:
    """Whether a dtype is one of ``FLOATS``."""
    return dtype in FLOATS


def is_int(dtype: str) -> bool:
    """Whether a dtype is one of integers; bool is not."""
    return dtype in INT_RANGES and dtype != "bool"
