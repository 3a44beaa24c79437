"""The threads that host code shares the steps of its parallel loops with.

They are Python's, and run compiled code alone, which needs no interpreter lock: while a pool is
open they look for tasks, and they sleep while it is closed. What they do is in ``pool/pool.c``,
which every piece of host code has; here is only the memory that they share with host functions.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

from vdla.runtime.pool.numbers import ALIGNMENT_BYTES, CLOSED, OPEN, OVER, POOL_BYTES
from vdla.runtime.turns import Turns
from vdla.support.numbers import ceil_div

BEGIN, WORK, SET = "vdla_begin", "vdla_work", "vdla_set"
NAME = "vdla host code"


class Code(Protocol):
    """Compiled code; its functions can be called as long as the object lives."""

    def function(self, name: str, *takes: Any) -> Any:
        """The function called ``name``, which takes arguments of the ctypes types ``takes``."""


class Pool:
    """Threads for host functions that get ``address``: ``threads``, the caller's among them.

    The other threads, the workers, are started when first needed, and end with the pool.
    """

    def __init__(self, code: Code, threads: int) -> None:
        self._shared, self._turns = _Shared(code), Turns()
        self._workers = threads - 1
        weakref.finalize(self, self._shared.set, OVER)

    @property
    def address(self) -> int:
        """Address of the memory that host functions and threads share."""
        return self._shared.address

    @contextmanager
    def open(self) -> Iterator[None]:
        """Workers share the loops of what is called meanwhile; several callers take turns."""
        with self._turns:
            self._shared.start(self._workers)
            self._shared.avoid_cpu(current_cpu())
            self._shared.set(OPEN)
            try:
                yield
            finally:
                self._shared.set(CLOSED)


class _Shared:
    """State kept alive by the threads, so that a Pool can be collected while they still run."""

    def __init__(self, code: Code) -> None:
        self.code = code  # kept: threads run it
        self._work = code.function(WORK, ctypes.c_void_p)
        self._set = code.function(SET, ctypes.c_void_p, ctypes.c_int64)
        self.memory = ctypes.create_string_buffer(POOL_BYTES + ALIGNMENT_BYTES)
        self.address = ceil_div(ctypes.addressof(self.memory), ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        code.function(BEGIN, ctypes.c_void_p)(self.address)
        self.thread_ids: list[int] = []  # the system's, of the workers
        self.avoided_cpu: int | None = None

    def work(self) -> None:
        """Runs tasks until the pool is over; the body of each worker."""
        self._work(self.address)

    def start(self, count: int) -> None:
        """Starts workers until there are ``count``."""
        for _ in range(len(self.thread_ids), count):
            thread = threading.Thread(target=self.work, name=NAME, daemon=True)
            thread.start()
            self.thread_ids.append(thread.native_id or 0)

    def avoid_cpu(self, cpu: int | None) -> None:
        """Pins the worker threads to other processors than ``cpu``.

        A system may wake a thread on the processor of its waker, where it waits behind the waker
        until the system balances its load: some ten milliseconds, longer than most networks take.
        """
        if cpu is None or cpu == self.avoided_cpu:
            return
        others = os.sched_getaffinity(0) - {cpu}
        for thread_id in self.thread_ids if others else ():
            os.sched_setaffinity(thread_id, others)
        self.avoided_cpu = cpu

    def set(self, state: int) -> None:
        """Opens, closes or ends the pool."""
        self._set(self.address, state)


def current_cpu() -> int | None:
    """Number of the processor that the caller runs on; None where threads can't be pinned."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cpu: int = _system().sched_getcpu()
    return cpu if cpu >= 0 else None


@cache
def _system() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def available() -> int:
    """Number of processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
