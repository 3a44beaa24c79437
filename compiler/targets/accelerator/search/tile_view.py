"""A space of tiles as cost models see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vdla.compiler.search.forest import Forest
from vdla.compiler.search.table import Features, Table
from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.compiler.targets.accelerator.search import tile_trees
from vdla.compiler.targets.accelerator.search.tile_features import Nested, features
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

    @cached_property
    def all_trees(self) -> Forest:
        """The tree of every tile."""
        return tile_trees.forest(self.template, self.space, self.config)

    def features(self, points: Sequence[int]) -> Features:
        """Features of some tiles."""
        return self.all_features.take(points)

    def trees(self, points: Sequence[int]) -> Forest:
        """Trees of some tiles."""
        return self.all_trees.take(points)
