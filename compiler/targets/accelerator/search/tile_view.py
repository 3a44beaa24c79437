"""A space of tiles as cost models see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vdla.compiler.search.forest import Forest
from vdla.compiler.search.table import Features, Table
from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.compiler.targets.accelerator.search.tile_features import Nested, features
from vdla.compiler.targets.accelerator.search.tile_trees import forest
from vdla.isa.config import Config


@dataclass(eq=False)
class TileView:
    """Tiles of a template on a config, each by its position in the table ``space``."""

    template: Nested
    space: Table[Tile]
    config: Config

    @cached_property
    def all_features(self) -> Features:
        """Features of every tile."""
        return features(self.template, self.space, self.config)

    def features(self, points: Sequence[int]) -> Features:
        """Features of some tiles."""
        return self.all_features.take(points)

    def trees(self, points: Sequence[int]) -> Forest:
        """Trees of some tiles, which are made anew: those of a whole space take much memory."""
        tiles = [self.space.candidate(point) for point in points]
        if not tiles:
            return forest(self.template, self.space.candidates[:1], self.config).take([])
        return forest(self.template, tiles, self.config)
