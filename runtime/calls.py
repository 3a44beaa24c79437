"""Host functions in a row: one call of compiled code, in which threads share parallel loops.

``vdla_call`` in ``runtime/pool/pool.c`` calls them and notes the time after each.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial

import numpy as np

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

    def run(self) -> Callable[[], list[float]]:
        """Calls them; the result gives the seconds that each took, as long as it is kept."""
        start = time.clock_gettime(time.CLOCK_MONOTONIC)
        with self._pool.open() if self._pool else nullcontext():
            self._call(self._calls, self._count, self._times)
        return partial(_durations, start, bytes(self._times))


def _durations(start: float, times: bytes) -> list[float]:
    """Seconds from each time to the next; ``times`` are pairs of seconds and nanoseconds."""
    pairs = np.frombuffer(times, ctypes.c_long).reshape(-1, 2)
    ends = pairs[:, 0] + 1e-9 * pairs[:, 1]
    result: list[float] = np.diff(ends, prepend=start).tolist()
    return result
