"""Spaces of candidates by the numbers of their points, as searchers and the tuner ask for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Candidate = TypeVar("Candidate")


class Points(Protocol):
    """Interface of a space to searchers: its size, random points, neighbours, children."""

    def __len__(self) -> int: ...

    def draw(self, known: Collection[int], count: int, rng: np.random.Generator) -> list[int]:
        """Distinct points outside of ``known``."""

    def step(self, points: Ints, rng: np.random.Generator) -> Ints:
        """A random neighbour of each point."""

    def cross(self, a: int, b: int, rng: np.random.Generator) -> int:
        """A child of two points."""


class Listed(Points, Protocol):
    """Points that are all there from the start, each with its codes for the knobs."""

    @property
    def codes(self) -> Ints:
        """Each point's position among each knob's values [points, knobs]."""

    @property
    def free(self) -> Sequence[int]:
        """The columns of ``codes`` that the others don't determine."""


class Space(Points, Protocol[Candidate]):
    """Points that stand for candidates: what may be measured."""

    def candidate(self, point: int) -> Candidate:
        """The candidate that a point stands for."""

    def point(self, candidate: Candidate) -> int | None:
        """The point of a candidate; None where the space doesn't have it."""
