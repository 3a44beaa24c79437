"""Progress of long work: who does it reports, and one listener at most shows it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int], None]  # is told what is done, how much of it, and of how much

_listeners: list[Listener] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Within the block, ``listener`` is told what is reported."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.pop()


def report(what: str, done: int, total: int) -> bool:
    """Tells the listener of the innermost block; False where nobody listens."""
    if not _listeners:
        return False
    _listeners[-1](what, done, total)
    return True


def remark(text: str) -> None:
    """Says what takes long: to the listener, else on stderr, since a log without a word looks as if
    nothing went on."""
    if not report(text, 0, 1):
        print(f"vdla: {text}", file=sys.stderr, flush=True)
