"""Draws that random programs and models are made of."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class Draws:
    """Choices by a seed, and names that are new."""

    def __init__(self, seed: int) -> None:
        self.rng, self.names = np.random.default_rng(seed), 0

    def name(self, letter: str) -> str:
        """A name that nothing else has, but for what a caller draws again with ``names`` reset."""
        self.names += 1
        return f"{letter}{self.names}"

    def pick(self, choices: Iterable):
        """One of several, all equally likely."""
        choices = list(choices)
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        """True in so many of all cases."""
        return bool(self.rng.random() < share)

    def count(self, least: int, most: int) -> int:
        """A number, the last one included."""
        return int(self.rng.integers(least, most + 1))
