"""A space whose candidates are listed: which of them are neighbours, and the features of them all.

A candidate's fields are its knobs. The space is the table of the legal candidates with one column
of codes per knob, so whatever a target lists is searched and nothing illegal is ever proposed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.search.points import Floats, Ints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")
Value = int | str  # of a knob


@dataclass(frozen=True, eq=False)
class Table(Generic[Row]):
    """The legal candidates, frozen dataclasses of one class; a point is the position of one.

    ``knobs`` maps each field to its values in ascending order; ``codes`` [rows, knobs] holds
    each candidate's position among them.
    """

    candidates: tuple[Row, ...]
    knobs: dict[str, tuple[Value, ...]]
    codes: Ints

    @classmethod
    def of(cls, candidates: Sequence[Row]) -> Table[Row]:
        """The space of some candidates of one class.

        Raises:
            ValueError: there are none.
        """
        if not candidates:
            raise ValueError("space: expected at least one candidate, found none")
        knobs, columns = {}, []
        for field in fields(candidates[0]):
            column = [getattr(each, field.name) for each in candidates]
            values = tuple(sorted(set(column)))
            code = {value: i for i, value in enumerate(values)}
            knobs[field.name] = values
            columns.append([code[value] for value in column])
        return cls(tuple(candidates), knobs, np.array(columns, np.int64).T.copy())

    def __len__(self) -> int:
        return len(self.candidates)

    def candidate(self, point: int) -> Row:
        """The candidate at a position."""
        return self.candidates[point]

    def point(self, candidate: Row) -> int | None:
        """The position of a candidate; None where it isn't listed."""
        return self._index.get(candidate)

    @cached_property
    def _index(self) -> dict[Row, int]:
        return {each: i for i, each in enumerate(self.candidates)}

    @cached_property
    def free(self) -> list[int]:
        """The columns that the others don't determine: the knobs a walk can turn."""
        kept = list(range(self.codes.shape[1]))
        for column in reversed(range(self.codes.shape[1])):
            rest = [c for c in kept if c != column]
            if rest and len(np.unique(self._keys(rest))) == len(self):
                kept = rest
        return kept

    def draw(self, known: Collection[int], count: int, rng: np.random.Generator) -> list[int]:
        """Distinct points outside of ``known``, of which there are as many."""
        unknown = np.ones(len(self), np.bool_)
        unknown[list(known)] = False
        drawn: list[int] = rng.choice(np.flatnonzero(unknown), count, replace=False).tolist()
        return drawn

    def neighbours(self, point: int) -> list[int]:
        """The points that differ from one in a single free knob, ascending."""
        order, start, size, _ = self._turns
        result: set[int] = set()
        for turn in range(len(order)):
            first = start[turn, point]
            result.update(order[turn, first : first + size[turn, point]].tolist())
        return sorted(result - {point})

    def step(self, points: Ints, rng: np.random.Generator) -> Ints:
        """A random neighbour of each point: first the knob is drawn, then its new value.

        A point without neighbours jumps anywhere.
        """
        order, start, size, rank = self._turns
        open_ = size[:, points] > 1
        turn = np.argmax(rng.random(open_.shape) * open_, axis=0)
        others = np.maximum(size[turn, points] - 1, 1)
        offset = (rng.random(len(points)) * others).astype(np.int64)
        offset += offset >= rank[turn, points]
        last = size[turn, points] - 1
        moved = order[turn, start[turn, points] + np.minimum(offset, last)]
        anywhere = rng.integers(len(self), size=len(points))
        return np.where(open_.any(axis=0), moved, anywhere)

    def cross(self, a: int, b: int, rng: np.random.Generator) -> int:
        """A child that takes every knob from one of two parents, and what is legal nearest that."""
        mask = rng.random(self.codes.shape[1]) < 0.5
        wanted = np.where(mask, self.codes[a], self.codes[b])
        same = (self.codes[:, self.free] == wanted[self.free]).sum(axis=1)
        return int(rng.choice(np.flatnonzero(same == same.max())))

    def _keys(self, columns: Sequence[int]) -> Ints:
        """One number per point, equal where all these columns are."""
        keys = np.zeros(len(self), np.int64)
        for column in columns:
            keys = keys * (int(self.codes[:, column].max()) + 1) + self.codes[:, column]
        return keys

    @cached_property
    def _turns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Per free knob [knobs, points]: the points in groups that differ in this knob alone.

        (order, and for each point: where its group starts in it, its size, its own rank there).
        """
        shape = (len(self.free), len(self))
        order, start, size, rank = (np.zeros(shape, np.int64) for _ in range(4))
        for turn, column in enumerate(self.free):
            rest = [c for c in self.free if c != column]
            _, group, count = np.unique(self._keys(rest), return_inverse=True, return_counts=True)
            order[turn] = np.argsort(group, kind="stable")
            start[turn] = (np.cumsum(count) - count)[group]
            size[turn] = count[group]
            rank[turn, order[turn]] = np.arange(len(self))
            rank[turn] -= start[turn]
        return order, start, size, rank


@dataclass(frozen=True)
class Features:
    """Features of some candidates, for a cost model: a matrix [candidates, features] with the
    features' names; a row of NaN for a candidate that isn't legal.

    Of a table's candidates one is ``floor``, the cost that a candidate can't go below: a bound and
    no estimate.
    """

    names: tuple[str, ...]
    values: Floats

    def __len__(self) -> int:
        return len(self.values)

    def take(self, places: Sequence[int]) -> Features:
        """Features of the candidates at some places."""
        return Features(self.names, self.values[np.asarray(places, np.int64)])

    @property
    def legal(self) -> NDArray[np.bool_]:
        """Whether a candidate is legal, for each."""
        missing = np.count_nonzero(np.isnan(self.values), axis=1)
        legal: NDArray[np.bool_] = np.less(missing, self.values.shape[1])
        return legal

    def columns(self, names: Sequence[str]) -> Floats:
        """Features by names [candidates, names]; NaN for one that isn't there."""
        column = {name: i for i, name in enumerate(self.names)}
        places = [column.get(name, len(self.names)) for name in names]
        missing = np.full((len(self), 1), np.nan)
        return np.concatenate([self.values, missing], axis=1)[:, places]

    @property
    def floor(self) -> Floats:
        """The cost of each candidate at the very least."""
        return self.values[:, self.names.index("floor")]

    def row(self, point: int) -> dict[str, float]:
        """One candidate's features by name."""
        return dict(zip(self.names, map(float, self.values[point]), strict=True))
