"""Tiles that the buffers hold, of templates that leave it to their loops to say so.

A tile's loops take milliseconds to make, so few are asked: a tile that is at least as large in each
number as one that isn't held, and otherwise the same, isn't held either. Of the tiles that are left
the one is asked next whose answer rules out most.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.operators.cost import FINALISTS, no_tile, ranked
from vdla.compiler.targets.accelerator.operators.loops import is_held
from vdla.compiler.targets.accelerator.operators.template import N, T, Template, alike
from vdla.isa.config import Config

Flags = NDArray[np.bool_]


class Held(Template[N, T]):
    """A template of one tile on each config, the best one whose loops the buffers hold."""

    TUNED = False

    @abstractmethod
    def sizes(self, config: Config, vthreads: int, only: T | None = None) -> Iterator[T]:
        """The tiles for so many virtual threads, whatever the buffers hold; with ``only``, those of
        its size."""

    def tiles(self, config: Config, vthreads: int, only: T | None = None) -> Iterator[T]:
        """Sizes whose loops the buffers hold."""
        tiles = [tile for tile in self.sizes(config, vthreads, only) if only in (None, tile)]
        larger = _larger(tiles)
        left = np.ones(len(tiles), np.bool_)
        for number, tile in enumerate(tiles):
            if left[number] and is_held(self, tile, config):
                yield tile
            elif left[number]:
                left &= ~larger[number]

    def has_room(self, config: Config) -> bool:
        """Whether the buffers hold a tile for one thread."""
        return any(True for _ in self.tiles(config, 1))

    def ranking(self, tiles: Sequence[T], config: Config) -> Sequence[int]:
        """Places of some tiles, the best one first: the one of the fewest cycles by the analytic
        model."""
        return ranked([(self.cost(tile, config), at) for at, tile in alike(tiles)], config)

    def best(self, config: Config, vthreads: int) -> T:
        """The best tile that the buffers hold.

        Raises:
            TilingError: they hold none.
        """

        def asked(tile: T) -> bool:
            return is_held(self, tile, config)

        tiles = list(self.sizes(config, vthreads))
        if len(tiles) > FINALISTS:  # of which only those that are held are to be ranked
            tiles = _held_of_chain(tiles, asked)
        ordered = [tiles[place] for place in self.ranking(tiles, config)]
        tile = first_held(ordered, asked)
        if tile is None:
            raise no_tile(f"one tile of {self.wanted}", config)
        return tile


def first_held(tiles: Sequence[T], asked: Callable[[T], bool]) -> T | None:
    """The first of some tiles that the buffers hold, if any, with few of them ``asked``."""
    larger = _larger(tiles)
    left, result = np.arange(len(tiles)), None
    place = 0
    while len(left):
        chosen = int(left[place])
        if asked(tiles[chosen]):
            result, left = tiles[chosen], left[:place]
        else:
            left = left[~larger[chosen, left]]
        ruled_out = larger[np.ix_(left, left)].sum(axis=1), len(left) - np.arange(len(left))
        place = int(np.argmax(np.minimum(*ruled_out))) if len(left) else 0
    return result


def _held_of_chain(tiles: list[T], asked: Callable[[T], bool]) -> list[T]:
    """The tiles that the buffers hold where each is larger or smaller than each other one, found by
    bisection; elsewhere all."""
    larger = _larger(tiles)
    if not (larger | larger.T).all():
        return tiles
    ascending = np.argsort(-larger.sum(axis=1), kind="stable").tolist()
    count = bisect_left(ascending, True, key=lambda place: not asked(tiles[place]))
    return [tiles[place] for place in sorted(ascending[:count])]


def _larger(tiles: Sequence[T]) -> Flags:
    """Whether a tile, by its column, is as large as another one, by its row, in each number and
    otherwise the same."""
    result = np.ones((len(tiles), len(tiles)), np.bool_)
    for knob in fields(tiles[0]) if tiles else ():
        values = np.array([getattr(tile, knob.name) for tile in tiles])
        number = values.dtype.kind == "i"
        result &= values >= values[:, None] if number else values == values[:, None]
    return result
