"""Turns of several Python threads at what they may use one after the other."""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType


class Turns:
    """A lock for a ``with`` block: who comes second waits until the first has left.

    A process made by fork has none of the other threads, so nobody would leave the block there:
    it begins with the lock open.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _all.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._lock.release()

    def reset(self) -> None:
        """Opens the lock, whoever held it."""
        self._lock = threading.Lock()


_all: weakref.WeakSet[Turns] = weakref.WeakSet()


def _open_all() -> None:
    for turns in list(_all):
        turns.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
