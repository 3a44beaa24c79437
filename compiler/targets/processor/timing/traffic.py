"""Bytes that a network's steps bring from each level of memory, when it runs again and again.

Caches are simulated in pages, each as large as the description says, the page that was used longest
ago being the first to go. A step touches all bytes of its tensors once, whatever order its
instructions read them in: what a tile reads again is taken to lie in the nearest cache.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from vdla.compiler.targets.processor.timing.machine import Machine

PAGE_BYTES = 4096

Ranges = Sequence[tuple[int, int]]  # first byte, and the one behind the last


class _Level:
    """A cache of pages."""

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity = max(1, capacity_bytes // PAGE_BYTES)
        self.pages: OrderedDict[int, None] = OrderedDict()

    def touch(self, page: int) -> bool:
        """Uses a page; says whether it was there."""
        known = page in self.pages
        if known:
            self.pages.move_to_end(page)
        else:
            self.pages[page] = None
            if len(self.pages) > self.capacity:
                self.pages.popitem(last=False)
        return known


def traffic(steps: Sequence[Ranges], machine: Machine) -> list[list[float]]:
    """For each step, the bytes that come from each cache behind the first and, last, from memory.

    The steps run twice, and the second run counts.
    """
    levels = [_Level(cache.bytes) for cache in machine.caches]
    result: list[list[float]] = []
    for count in (False, True):
        for ranges in steps:
            row = [0.0] * len(levels)
            for start, end in ranges:
                for page in range(start // PAGE_BYTES, -(-end // PAGE_BYTES)):
                    low, high = max(start, page * PAGE_BYTES), min(end, (page + 1) * PAGE_BYTES)
                    missed = [not level.touch(page) for level in levels]
                    source = next((n for n in range(len(levels)) if not missed[n]), len(levels))
                    if source:
                        row[source - 1] += high - low
            if count:
                result.append(row)
    return result


def memory_seconds(row: Sequence[float], machine: Machine, most_bytes: float) -> float:
    """Seconds for what a step brings from each level; ``most_bytes`` is what it loads and stores
    at all, where it doesn't touch all of its tensors."""
    whole = sum(row)
    share = min(1.0, most_bytes / whole) if whole else 0.0
    hertz = machine.clock_mhz * 1e6
    rates = [cache.bytes_per_cycle * hertz for cache in machine.caches[1:]]
    rates.append(machine.bytes_per_second)
    return sum(share * size / rate for size, rate in zip(row, rates, strict=True))
