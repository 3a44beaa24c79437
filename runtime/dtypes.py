"""Element types by name: numpy's, and those that are only stored, which ml_dtypes has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STORED = (  # nothing computes in them: their numbers become float32 first, and of float32 again
    "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2",
)  # fmt: skip

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", *STORED,
)  # fmt: skip


def dtype_of(name: str) -> np.dtype[Any]:
    """An element type by its name. One of fewer than 8 bits takes a byte.

    Raises:
        TypeError: there is none of that name.
    """
    if name in STORED:
        import ml_dtypes  # most programs have no use for it

        stored: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return stored
    return np.dtype(name)


def to_write(array: NDArray[Any]) -> NDArray[Any]:
    """An array as numpy can write and read it: elements of stored types as plain bytes."""
    stored = array.dtype.name in STORED
    return np.ascontiguousarray(array).view(f"V{array.itemsize}") if stored else array


def read_as(array: NDArray[Any], name: str) -> NDArray[Any]:
    """An array of a file: what ``to_write`` made of elements of type ``name`` is that again."""
    kind = dtype_of(name)
    plain = name in STORED and array.dtype == np.dtype((np.void, kind.itemsize))
    return array.view(kind) if plain else array
