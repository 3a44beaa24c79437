"""Results of ``==`` and ``!=`` of expressions: whether two trees are equal, or an expression.

The compiler compares trees. In a function that a user writes for te, such as the body of
``te.compute``, ``i == j`` is the expression of whether two values are equal, as in TVM: there it
stands beside ``i < j``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast


class _Mode(threading.local):
    values = False


_mode = _Mode()
_blocks = 0  # in which values are compared, in all threads: without any, nobody asks for a mode


@contextmanager
def comparing(*, values: bool) -> Iterator[None]:
    """Within the block, in this thread, ``==`` gives expressions, or else compares trees."""
    global _blocks
    before, _mode.values = _mode.values, values
    with _lock:
        _blocks += values
    try:
        yield
    finally:
        with _lock:
            _blocks -= values
        _mode.values = before


_lock = threading.Lock()


def compares_values() -> bool:
    """Whether ``==`` gives an expression now."""
    return bool(_blocks) and _mode.values


def tree_equality(*fields: str) -> Callable[[object, object], bool]:
    """An ``__eq__`` for expressions of one class: trees are equal whose ``fields`` are.

    It is written out, as ``dataclass`` writes its own: passes compare trees all the time, and what
    goes through fields by their names takes twice as long.
    """
    own, others = (", ".join(f"{who}.{name}" for name in fields) for who in ("self", "other"))
    text = f"""
def __eq__(self, other):
    if _blocks and _mode.values:
        return self.equal(other)
    if other.__class__ is self.__class__:
        return ({own},) == ({others},)
    return NotImplemented
"""
    made: dict[str, object] = {}
    exec(text, globals(), made)
    return cast(Callable[[object, object], bool], made["__eq__"])
