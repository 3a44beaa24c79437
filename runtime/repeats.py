"""Host functions that run again for their shortest time: a first run also pays for pages, caches
and threads that aren't there yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

MOST = 8  # runs of a row of functions


class Repeats:
    """Repetitions within ``left`` seconds; none unless there are some."""

    def __init__(self) -> None:
        self.left = 0.0

    def shortest(
        self, call: Callable[[], Callable[[], list[float]]], places: Sequence[NDArray[np.uint8]]
    ) -> Callable[[], list[float]]:
        """Calls functions, and again as long as there is time; the result gives each one's shortest
        seconds.

        Args:
            call: calls them; its result gives the seconds that each took.
            places: the memory that they read and write, which is put back before each repetition.
        """
        if self.left <= 0:
            return call()
        began = time.perf_counter()
        before = [place.copy() for place in places]
        seconds = call()()
        for _ in range(MOST - 1):
            took = time.perf_counter() - began
            if took > self.left:
                break
            began = time.perf_counter()
            for place, old in zip(places, before, strict=True):
                place[...] = old
            seconds = list(map(min, seconds, call()()))
            self.left -= time.perf_counter() - began
        return lambda: seconds
