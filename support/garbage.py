"""Pace at which Python looks for cycles of garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 100_000  # new objects between two looks at the youngest


@contextmanager
def rare_collection() -> Iterator[None]:
    """Has Python look less often for cycles of garbage, as long as the context is open.

    A compiler makes millions of objects that live until its end, and few cycles: looking through
    all of them again and again took a fifth of its time.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(RARELY, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
