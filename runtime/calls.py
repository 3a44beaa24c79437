"""Host functions in a row: one call of compiled code, in which threads share parallel loops.

``vdla_call`` in ``runtime/pool/pool.c`` calls them and notes the time after each.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from contextlib import nullcontext

from vdla.runtime.native import NativeLibrary
from vdla.runtime.threads import Pool

CALL = "vdla_call"


class Calls:
    """Functions by name, each with the addresses of its buffers, to be called in order."""

    def __init__(
        self, library: NativeLibrary, functions: Sequence[tuple[str, list[int]]], pool: Pool | None
    ) -> None:
        self._pool, self._count = pool, len(functions)
        self._call = library.function(CALL, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        behind = pool.address if pool else 0
        self._buffers = [
            (ctypes.c_void_p * (len(each) + 1))(*each, behind) for _, each in functions
        ]
        pairs = [
            pointer
            for (name, _), buffers in zip(functions, self._buffers, strict=True)
            for pointer in (library.address(name), ctypes.addressof(buffers))
        ]
        self._calls = (ctypes.c_void_p * len(pairs))(*pairs)
        self._times = (ctypes.c_long * (2 * self._count))()  # seconds and nanoseconds

    def run(self) -> list[float]:
        """Calls them; how many seconds each took."""
        start = time.clock_gettime(time.CLOCK_MONOTONIC)
        with self._pool.open() if self._pool else nullcontext():
            self._call(self._calls, self._count, self._times)
        ends = [s + 1e-9 * n for s, n in zip(self._times[::2], self._times[1::2], strict=True)]
        return [end - begin for begin, end in zip([start, *ends], ends, strict=False)]
