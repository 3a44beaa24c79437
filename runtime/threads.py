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
from typing import Any, Protocol

from vdla.runtime.pool.numbers import ALIGNMENT_BYTES, CLOSED, OPEN, OVER, POOL_BYTES
from vdla.runtime.turns import Turns

BEGIN, WORK, SET = "vdla_begin", "vdla_work", "vdla_set"
NAME = "vdla host code"


class Code(Protocol):
    """What has functions, as long as it lives."""

    def function(self, name: str, *takes: Any) -> Any:
        """The function of a name, of arguments in ctypes' words."""


class Pool:
    """``threads`` threads, the caller's among them, for host functions that get ``address``.

    The others are started when they are first needed, and end with the pool.
    """

    def __init__(self, code: Code, threads: int) -> None:
        self._shared, self._turns = _Shared(code), Turns()
        self._others = threads - 1
        weakref.finalize(self, self._shared.set, OVER)

    @property
    def address(self) -> int:
        """Where the memory is that host functions and threads share."""
        return self._shared.address

    @contextmanager
    def open(self) -> Iterator[None]:
        """Threads take part in what is called meanwhile; of several callers in one at a time."""
        with self._turns:
            self._shared.start(self._others)
            self._shared.leave(current_cpu())
            self._shared.set(OPEN)
            try:
                yield
            finally:
                self._shared.set(CLOSED)


class _Shared:
    """What the threads have of a pool, so that it can go before they do."""

    def __init__(self, code: Code) -> None:
        self.code = code  # it must not go while threads run it
        self._work = code.function(WORK, ctypes.c_void_p)
        self._set = code.function(SET, ctypes.c_void_p, ctypes.c_int64)
        self.memory = ctypes.create_string_buffer(POOL_BYTES + ALIGNMENT_BYTES)
        self.address = -(-ctypes.addressof(self.memory) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        code.function(BEGIN, ctypes.c_void_p)(self.address)
        self.numbers: list[int] = []  # the system's, of the threads
        self.left: int | None = None

    def work(self) -> None:
        """What a thread does, until the pool is over."""
        self._work(self.address)

    def start(self, count: int) -> None:
        """Starts what is missing of so many threads."""
        for _ in range(len(self.numbers), count):
            thread = threading.Thread(target=self.work, name=NAME, daemon=True)
            thread.start()
            self.numbers.append(thread.native_id or 0)

    def leave(self, cpu: int | None) -> None:
        """Has the threads run on other processors than the caller's.

        A system may wake a thread on the processor of who wakes it, to stand in line behind it
        until balance is next looked for: some ten milliseconds, which is longer than most networks
        take.
        """
        if cpu is None or cpu == self.left:
            return
        others = os.sched_getaffinity(0) - {cpu}
        for number in self.numbers if others else ():
            os.sched_setaffinity(number, others)
        self.left = cpu

    def set(self, state: int) -> None:
        self._set(self.address, state)


def current_cpu() -> int | None:
    """The processor that the caller runs on, where the system tells and takes wishes."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cpu: int = ctypes.CDLL(None).sched_getcpu()
    return cpu if cpu >= 0 else None


def available() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
