"""Host functions in a row: one call of compiled code, in which threads share parallel loops.

``vdla_call`` in ``runtime/pool/pool.c`` calls them and adds up the time of each. Between them may
be moves and jumps, for choices and loops.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import ClassVar

import numpy as np

from vdla.runtime.native import NativeLibrary
from vdla.runtime.threads import Pool

CALL = "vdla_call"
Function = tuple[str, list[int]]  # a name, and the addresses of its buffers


class Control(ctypes.Structure):
    """A move or a jump in a row, as ``struct control`` of ``runtime/pool/pool.c`` has it.

    Args:
        kind: one of ``runtime/pool/numbers.py``.
        to: the number of the call that comes next.
        end: of NEXT, the number of the call behind the loop.
        size: bytes that are moved; of NEXT, the number of turns.
        turn: the address of the int64 that counts turns.
        source: the address of what is moved, or of a condition.
        into: the address of where it goes.
    """

    _fields_: ClassVar = [
        ("kind", ctypes.c_uint32),
        ("to", ctypes.c_uint32),
        ("end", ctypes.c_uint32),
        ("size", ctypes.c_size_t),
        ("turn", ctypes.c_void_p),
        ("source", ctypes.c_void_p),
        ("into", ctypes.c_void_p),
    ]


class Calls:
    """Functions and controls, to be called in order but for jumps.

    ``end`` is where the last run of them left the row: the number of calls, or of a place beyond
    that a jump names.
    """

    def __init__(
        self, library: NativeLibrary, calls: Sequence[Function | Control], pool: Pool | None
    ) -> None:
        self._pool, self._count, self.end = pool, len(calls), 0
        takes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
        self._call = library.function(CALL, *takes, gives=ctypes.c_uint32)
        self._kept = [_buffers(each, pool) for each in calls]  # what the calls point to
        pairs = [
            pointer
            for each, buffers in zip(calls, self._kept, strict=True)
            for pointer in (
                0 if isinstance(each, Control) else library.address(each[0]),
                ctypes.addressof(buffers),
            )
        ]
        self._calls = (ctypes.c_void_p * len(pairs))(*pairs)
        self._times = (ctypes.c_long * (2 * self._count))()  # seconds and nanoseconds
        self._is_timed = [not isinstance(each, Control) for each in calls]

    def run(self) -> Callable[[], list[float]]:
        """Calls them; the result gives the seconds that each function took, as long as it is
        kept."""
        ctypes.memset(self._times, 0, ctypes.sizeof(self._times))
        with self._pool.open() if self._pool else nullcontext():
            self.end = self._call(self._calls, self._count, self._times)
        return partial(_seconds, bytes(self._times), self._is_timed)


def _buffers(
    call: Function | Control, pool: Pool | None
) -> ctypes.Array[ctypes.c_void_p] | Control:
    """The addresses of buffers and a pool that a function gets, or a control itself."""
    if isinstance(call, Control):
        return call
    addresses = (*call[1], pool.address if pool else 0)
    return (ctypes.c_void_p * len(addresses))(*addresses)


def _seconds(times: bytes, is_timed: Sequence[bool]) -> list[float]:
    """Seconds of the calls that are timed; ``times`` are pairs of seconds and nanoseconds."""
    pairs = np.frombuffer(times, ctypes.c_long).reshape(-1, 2)[np.array(is_timed, bool)]
    result: list[float] = (pairs[:, 0] + 1e-9 * pairs[:, 1]).tolist()
    return result
