"""A loop's arguments as words of 64 bits, in the order in which numba's functions take them.

    array       two null pointers, elements, bytes of an element, address, shape, strides
    record      its address
    int, bool   itself
    float       its bits
    None        0
    tuple       its parts, one after the other

The kinds say which types these are: machine code is made for them alone.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]


def laid_out(arguments: Sequence[Any]) -> tuple[Words, str]:
    """The words of a loop's arguments, and their kinds.

    Raises:
        TypeError: an argument that no loop takes, or an array that isn't contiguous and aligned or
            can't be written to.
    """
    words: list[int] = []
    kinds: list[str] = []
    for each in arguments:
        _lay_out(each, words, kinds)
    return np.array(words, np.int64), " ".join(kinds)


def _lay_out(value: Any, words: list[int], kinds: list[str]) -> None:
    if isinstance(value, np.ndarray):
        _check(value)
        kinds.append(f"{value.dtype.str[1:]}[{value.ndim}]")
        words += (0, 0, value.size, value.itemsize, value.ctypes.data)
        words += value.shape
        words += value.strides
    elif isinstance(value, tuple):
        kinds.append(f"{type(value).__name__}(")
        for each in value:
            _lay_out(each, words, kinds)
        kinds.append(")")
    elif isinstance(value, np.void):  # a record
        kinds.append(type(value).__name__)
        words.append(np.frombuffer(value, np.uint8).ctypes.data)
    elif isinstance(value, bool | np.bool_):
        kinds.append("bool")
        words.append(int(value))
    elif isinstance(value, int | np.int64):
        kinds.append("int")
        words.append(int(value))
    elif isinstance(value, float):
        kinds.append("float")
        words.append(struct.unpack("q", struct.pack("d", value))[0])
    elif value is None:
        kinds.append("None")
        words.append(0)
    else:
        raise TypeError(f"expected arrays, numbers, records or tuples, found {type(value)}")


def _check(array: NDArray[Any]) -> None:
    flags = array.flags
    if not flags.carray:
        flaw = "spread" if not flags.contiguous else "read-only" if flags.aligned else "unaligned"
        raise TypeError(
            f"expected arrays that are contiguous, aligned and may be written to, found one of "
            f"{array.dtype}{list(array.shape)} that is {flaw}"
        )
