"""What templates share that move int8 tensors.

A LOAD widens a tile's bytes into ACC, and a STORE writes them where they belong, at another scale
if need be. Nothing is computed between the two: the addresses do the work.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, intrinsics
from vdla.compiler.targets.accelerator.operators.cost import (
    CostColumns,
    TileCost,
    parts,
    shares,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.nest import Nest
from vdla.compiler.targets.accelerator.operators.template import N, Template, Tile
from vdla.compiler.te import Tensor
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class MoveTile(Tile):
    """Rows of one tile, or where that is one row, its pixels; tiles are dealt to the threads."""

    rows: int
    pixels: int
    vthreads: int = 1


@dataclass(frozen=True)
class Move:
    """One operand's way: ``data`` in DRAM, ``wide`` in ACC, and the stage that stores it.

    All have the axes (row, pixel, …, lane); ``stored`` may have more of them between.
    """

    data: Tensor
    wide: Tensor
    stored: Tensor


@dataclass(frozen=True)
class MoveTensors:
    """The tensors of an expression of moves; ``scales`` has a row of lanes for each move."""

    moves: Sequence[Move]
    scales: Tensor
    out: Tensor


@dataclass(frozen=True)
class Moves(Template[N, MoveTile]):
    """Copies of tensors of ``rows`` rows: of each as many ``pixels``, of ``vectors`` vectors each.

    What is a row and a pixel is the template's: pixels of a row lie side by side in DRAM, and rows
    of an operand one behind another.
    """

    TILE = MoveTile
    TUNED = False

    rows: int
    pixels: tuple[int, ...]
    vectors: int

    @abstractmethod
    def expression(self, config: Config) -> MoveTensors:
        """What is moved where."""

    @property
    def copies(self) -> int:
        """How often each operand's pixels are stored."""
        return 1

    @property
    def wanted(self) -> str:
        """With its article."""
        return f"{'an' if self.NOUN[0] in 'aeiou' else 'a'} {self.NOUN}"

    def tiles(
        self, config: Config, vthreads: int, only: MoveTile | None = None
    ) -> Iterator[MoveTile]:
        """Whole rows, or parts of one row, as many as ACC holds for all threads."""
        room = (config.depth("acc") - len(self.pixels)) // vthreads
        most = max(self.pixels)
        whole = [(rows, most) for rows in parts(self.rows)]
        cut = [(1, pixels) for pixels in parts(most)[:-1]]
        for rows, pixels in [*whole, *cut]:
            tile = MoveTile(rows, pixels, vthreads)
            if rows * pixels * self.vectors <= room and (only is None or tile == only):
                yield tile

    def cost(self, tile: MoveTile, config: Config) -> CostColumns:
        """One load and ``copies`` stores per tile of the longest operand."""
        entries = tile.rows * tile.pixels * self.vectors
        size = entries * config.out_entry
        load = transfer(size, size, config)
        store = self.copies * transfer(size, self.run(tile) * config.out_entry, config)
        tiles = sum(ceil_div(self.rows, tile.rows) * ceil_div(n, tile.pixels) for n in self.pixels)
        share = shares(tiles, tiles, tile.vthreads)
        return TileCost(*share, 1, 1, load, 0.0, 0.0, 0.0, 0.0, store, shared=False)

    @abstractmethod
    def run(self, tile: MoveTile) -> int:
        """Vectors that a STORE writes side by side."""

    def nest(self, tile: MoveTile, config: Config) -> Nest:
        """Not supported: moves aren't searched for."""
        raise NotImplementedError(f"{self.NAME}: expected a template that is tuned")

    def schedule(self, tile: MoveTile, config: Config) -> Schedule:
        """Each operand in tiles: loaded, and stored while the next one is loaded."""
        ins, e = intrinsics(config), self.expression(config)
        s = create_schedule(e.out, [*(move.data for move in e.moves), e.scales], self.NAME)
        scales = s.cache_read(e.scales, ACC, [move.stored for move in e.moves])
        s[scales].tensorize(s[scales].axis[-1], ins.load_acc)
        for move in e.moves:
            rows, pixels, *rest = s[move.stored].axis
            if tile.rows == 1:
                outer, inner = s[move.stored].split(pixels, min(tile.pixels, move.data.shape[1]))
                s[move.stored].reorder(rows, outer, inner, *rest)
            else:
                outer, _ = s[move.stored].split(rows, factor=tile.rows)
            s[move.stored].bind(outer, te.thread_axis("vthread", tile.vthreads))
            s[move.wide].set_scope(ACC)
            s[move.wide].compute_at(s[move.stored], outer)
            s[move.wide].tensorize(s[move.wide].axis[-1], ins.load_acc8)
            s[move.stored].tensorize(rest[-1], ins.store8)
        return s


def widened(data: Tensor, zero: int, name: str) -> Tensor:
    """An int8 operand in int32, less its zero point."""
    return te.compute(data.shape, lambda *i: data[i].astype("int32") - te.const(zero), name)
