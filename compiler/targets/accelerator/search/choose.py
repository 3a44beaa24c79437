"""The tile that is taken where nobody asks for another: the best recorded, else the model's."""

from __future__ import annotations

from functools import lru_cache

from vdla.compiler.targets.accelerator.operators.cost import TilingError
from vdla.compiler.targets.accelerator.operators.loops import Layer
from vdla.compiler.targets.accelerator.operators.template import AnyTemplate, Tile
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.isa.config import Config


def default_tile(
    template: AnyTemplate, config: Config, vthreads: int, records: TileRecords | None = BUNDLED
) -> Tile:
    """The best recorded tile of a template, else the one that the analytic model likes best.

    There are fewer threads where the work can't be shared out. Layers of one geometry share the
    search, whatever their zero points.

    Raises:
        TilingError: the buffers can't hold one tile.
    """
    return _default_tile(Layer.of(template), config, vthreads, records)


@lru_cache(maxsize=1 << 14)
def _default_tile(layer: Layer, config: Config, vthreads: int, records: TileRecords | None) -> Tile:
    template = layer.geometry if layer.template.TUNED else layer.template
    for threads in range(vthreads, 0, -1):
        tuned = records.tile(template, config, threads) if records and template.TUNED else None
        if tuned:
            return tuned
        try:
            best: Tile = template.best(config, threads)
            return best
        except TilingError:  # not enough tiles, or not enough room for so many
            if threads == 1:
                raise
    raise ValueError(f"vthreads: expected at least 1, found {vthreads}")
