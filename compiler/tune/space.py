"""The declared schedule space of an operator: its legal tiles, and which of them are neighbours.

A tile's fields are its knobs. The space is the table of the legal tiles with one column of codes
per knob, so whatever the tilings declare is searched and nothing illegal is ever proposed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, Tile
from vdla.isa.config import Config

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Space:
    """The legal tiles; a point is the position of one.

    ``knobs`` maps each field to its values in ascending order; ``codes`` [tiles, knobs] holds
    each tile's position among them.
    """

    tiles: tuple[Tile, ...]
    knobs: dict[str, tuple[Any, ...]]
    codes: Ints

    @classmethod
    def of(cls, tiles: Sequence[Tile]) -> Space:
        """The space of some tiles of one class.

        Raises:
            ValueError: there are none.
        """
        if not tiles:
            raise ValueError("space: expected at least one tile, found none")
        knobs, columns = {}, []
        for field in fields(tiles[0]):
            column = [getattr(tile, field.name) for tile in tiles]
            values = tuple(sorted(set(column)))
            code = {value: i for i, value in enumerate(values)}
            knobs[field.name] = values
            columns.append([code[value] for value in column])
        return cls(tuple(tiles), knobs, np.array(columns, np.int64).T.copy())

    def __len__(self) -> int:
        return len(self.tiles)

    @cached_property
    def index(self) -> dict[Tile, int]:
        """The point, which is the position in ``tiles``, of each tile."""
        return {tile: i for i, tile in enumerate(self.tiles)}

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
        """The tiles that differ from one in a single free knob, ascending."""
        order, start, size, _ = self._turns
        found: set[int] = set()
        for turn in range(len(order)):
            first = start[turn, point]
            found.update(order[turn, first : first + size[turn, point]].tolist())
        return sorted(found - {point})

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
        """One number per tile, equal where all these columns are."""
        keys = np.zeros(len(self), np.int64)
        for column in columns:
            keys = keys * (int(self.codes[:, column].max()) + 1) + self.codes[:, column]
        return keys

    @cached_property
    def _turns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Per free knob [knobs, tiles]: the tiles in groups that differ in this knob alone.

        (order, and for each tile: where its group starts in it, its size, the tile's rank there).
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


@lru_cache(maxsize=64)
def space(template: AnyTemplate, config: Config, vthreads: int) -> Space:
    """The space of a template for exactly so many virtual threads.

    Raises:
        TilingError: no tile is legal.
    """
    tiles = list(template.tiles(config, vthreads))
    if not tiles:
        raise TilingError(f"{config.name}: expected a tile for {vthreads} threads, found none")
    return Space.of(tiles)
