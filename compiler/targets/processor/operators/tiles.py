"""Tiles of registers: which places of an image, in which blocks of channels, are summed up at once.

A tile has a vector of sums for each of its places in each of its blocks. A step of the reduction
multiplies the data of its places with the weights of its blocks::

    for place: for block: sums[block, place, lanes] += data[place] * weight[block, lanes]

Each element of the data is read for all blocks and each vector of weights for all places, so that a
tile of p places and b blocks takes p + b reads for p * b multiplications. A processor does as many
of one in a cycle as of the other while they are in its first-level cache, where the data of a tile
stay; its weights are as a rule more than that. Places that a tile has beyond the image are computed
for nothing. ``best_tiling`` weighs all this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vdla.compiler.graph.types import Pair
from vdla.compiler.schedule.stage import Stage
from vdla.compiler.targets.processor.operators.nests import in_registers
from vdla.compiler.tir.ir import Var
from vdla.support.numbers import ceil_div

MOST_PLACES = 14  # of a tile
MOST_BLOCKS = 8
READ = 1.1  # time of a read, in multiplications
FAR_READ = 4.0  # and of one from the second-level cache
LATENCY = 10  # multiplications in the time from one to the next of the same sum
ROW = 0.05  # of a tile's time, that each row adds that doesn't adjoin the one before


@dataclass(frozen=True)
class Tiling:
    """Tiles of the places of an image.

    Attributes:
        grid: rows and columns that the places are taken in: the image's, or others.
        tile: rows and columns of a tile.
        blocks: blocks of channels of a tile.
    """

    grid: Pair
    tile: Pair
    blocks: int

    @property
    def whole(self) -> Pair:
        """Rows and columns of the grid, rounded up to whole tiles."""
        (rows, columns), (high, wide) = self.grid, self.tile
        return ceil_div(rows, high) * high, ceil_div(columns, wide) * wide

    @property
    def rows(self) -> int:
        """Number of tiles one below the other."""
        return self.whole[0] // self.tile[0]

    def cost(self, weight_read: float) -> float:
        """Time that the whole image takes, in multiplications of a step and a block."""
        (height, width), (high, wide) = self.whole, self.tile
        reads = READ * high * wide + weight_read * self.blocks
        rows = high if wide < width else 1
        longest = max(high * wide * self.blocks, reads, LATENCY) * (1 + ROW * (rows - 1))
        return round(height * width // (high * wide) * longest / self.blocks, 6)


@cache
def best_tiling(
    image: Pair,
    blocks: int,
    registers: int,
    *,
    pointwise: bool = False,
    weight_read: float = FAR_READ,
) -> Tiling:
    """The tiling that takes the least time; of equals, that with the most places in a row.

    Args:
        image: its rows and columns.
        blocks: blocks of channels of the result.
        registers: vectors that a processor's registers hold.
        pointwise: whether each place reads that of the data alone, so that all places can be taken
            in rows of any length that divides them.
        weight_read: time that reading a vector of weights takes, in multiplications.
    """
    return min(
        _tilings(image, blocks, registers, pointwise),
        key=lambda t: (t.cost(weight_read), -t.tile[0] * t.tile[1], -t.tile[1], t.grid != image),
    )


def _tilings(image: Pair, blocks: int, registers: int, pointwise: bool) -> Iterator[Tiling]:
    """All tilings whose sums fit the registers, beside the weights of a step and one element."""
    places = image[0] * image[1]
    grids = [image]
    if pointwise:
        others = (n for n in range(2, MOST_PLACES + 1) if places % n == 0 and image[1] % n)
        grids += [(places // n, n) for n in others]
    for together in (n for n in range(1, MOST_BLOCKS + 1) if blocks % n == 0):
        most = min(MOST_PLACES, (registers - 1) // together - 1)
        for grid in grids:
            for wide in range(1, min(most, grid[1]) + 1):
                for high in range(1, min(most // wide, grid[0]) + 1):
                    yield Tiling(grid, (high, wide), together)


@dataclass(frozen=True)
class TileLoops:
    """The loops of a result [N, O/l, H, W, l] that is computed tile by tile.

    ``n``, ``blocks``, ``band``, ``y`` and ``x`` go over images, groups of blocks, bands of rows,
    and the tiles of a band; the loops inside them are unrolled, the last one is a vector.
    """

    n: Var
    blocks: Var
    band: Var
    y: Var
    x: Var


def tile_result(
    out: Stage, tiling: Tiling, blocks: int, rows: int, *, blocks_first: bool = False
) -> TileLoops:
    """Splits the loops of a result into tiles.

    Args:
        out: the stage of the result.
        tiling: the tiles of its image.
        blocks: blocks of channels of a tile, as the result has them.
        rows: rows of tiles of a band.
        blocks_first: whether the loop over blocks is outside that over bands.
    """
    high, wide = tiling.tile
    n, o, y, x, l = out.axis
    if tiling.grid != (out.extent(y), out.extent(x)):
        y, x = out.split(out.fuse(y, x), factor=tiling.grid[1])
    oo, oi = out.split(o, factor=blocks)
    xo, xi = out.split(x, factor=wide)
    yo, yi = out.split(y, factor=high)
    band, yo = out.split(yo, factor=min(rows, out.extent(yo)))
    outer = [n, oo, band] if blocks_first else [n, band, oo]
    in_registers(out, [*outer, yo, xo], [yi, xi, oi], l)
    return TileLoops(n, oo, band, yo, xo)
