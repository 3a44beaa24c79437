"""The schedule space that an operator declares: its legal tiles, whose fields are the knobs."""

from __future__ import annotations

from functools import lru_cache

from vdla.compiler.search.table import Table
from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, Tile
from vdla.isa.config import Config


@lru_cache(maxsize=64)
def tile_space(template: AnyTemplate, config: Config, vthreads: int) -> Table[Tile]:
    """The space of a template for exactly so many virtual threads.

    Raises:
        TilingError: no tile is legal.
    """
    tiles = list(template.tiles(config, vthreads))
    if not tiles:
        raise TilingError(f"{config.name}: expected a tile for {vthreads} threads, found none")
    return Table.of(tiles)
