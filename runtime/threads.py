"""The threads that host code shares the steps of its parallel loops with.

They are Python's, and run compiled code alone, which needs no interpreter lock: while a pool is
open they look for tasks, and they sleep while it is closed. What they do is in
``compiler/codegen/builtins.py``; here is only the memory that they share with host functions.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

WORK = "vdla_work"
NAME = "vdla host code"
POOL_BYTES = 256
CLOSED = 128  # byte of the pool that says whether it is closed


class Code(Protocol):
    """What has functions, as long as it lives."""

    def function(self, name: str, *takes: Any) -> Any:
        """The function of a name, of arguments in ctypes' words."""


class Pool:
    """``threads`` threads, the caller's among them, for host functions that get ``address``.

    The others are started when they are first needed, and end with the pool.
    """

    def __init__(self, code: Code, threads: int) -> None:
        self._shared = _Shared(code)
        self._others = threads - 1
        weakref.finalize(self, self._shared.end)

    @property
    def address(self) -> int:
        """Where the memory is that host functions and threads share."""
        return self._shared.address

    @contextmanager
    def open(self) -> Iterator[None]:
        """Threads take part in what is called meanwhile."""
        shared = self._shared
        for _ in range(len(shared.asleep), self._others):
            shared.start()
        shared.set_closed(0)
        shared.wake()
        try:
            yield
        finally:
            self._shared.set_closed(1)


class _Shared:
    """What the threads have of a pool, so that it can go while they sleep."""

    def __init__(self, code: Code) -> None:
        self.code = code  # it must not go while threads run it
        self.work = code.function(WORK, ctypes.c_void_p)
        self.memory = ctypes.create_string_buffer(POOL_BYTES + 64)
        self.address = -(-ctypes.addressof(self.memory) // 64) * 64
        self.asleep: list[threading.Lock] = []  # one for each thread, held while it isn't wanted
        self.over = False
        self.set_closed(1)

    def set_closed(self, value: int) -> None:
        ctypes.c_int64.from_address(self.address + CLOSED).value = value

    def start(self) -> None:
        asleep = threading.Lock()
        asleep.acquire()
        self.asleep.append(asleep)
        thread = threading.Thread(target=self.take_part, args=(asleep,), name=NAME, daemon=True)
        thread.start()

    def wake(self) -> None:
        for asleep in self.asleep:
            if asleep.locked():
                asleep.release()

    def take_part(self, asleep: threading.Lock) -> None:
        while True:
            asleep.acquire()
            if self.over:
                return
            self.work(self.address)

    def end(self) -> None:
        self.over = True
        self.wake()


def available() -> int:
    """How many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
