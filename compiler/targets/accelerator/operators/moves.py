"""Base of the templates that move int8 tensors.

A LOAD widens a tile's bytes into ACC, and a STORE writes them where they belong, at another scale
if need be. Between the two, the ALU may do some steps on each vector.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vdla.compiler import te
from vdla.compiler.schedule import Schedule, create_schedule
from vdla.compiler.targets.accelerator.description import ACC, intrinsics
from vdla.compiler.targets.accelerator.operators.cost import (
    TileCost,
    group_cycles,
    pace,
    parts,
    shares,
    transfer,
)
from vdla.compiler.targets.accelerator.operators.held import Held
from vdla.compiler.targets.accelerator.operators.template import (
    Array,
    N,
    Tile,
    one_scale,
    with_article,
)
from vdla.compiler.targets.accelerator.options.tables import TAB
from vdla.compiler.te import Tensor
from vdla.compiler.tir.ir import Expr, Var
from vdla.compiler.tir.ir.intrin import TensorIntrin
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
    """One operand's way: ``data`` in DRAM, what it becomes in ACC, and the stage that stores it.

    ``steps`` are what ACC holds, each with its instruction, the last one first. The axes of
    ``stored`` begin with the row and the pixel and end with the lane. ``again`` are those of them
    over which a tile is stored several times. ``others`` are loaded with the data.
    """

    data: Tensor
    steps: Sequence[tuple[Tensor, TensorIntrin]]
    stored: Tensor
    again: Sequence[Var] = ()
    others: Sequence[Tensor] = ()


@dataclass(frozen=True)
class MoveTensors:
    """The tensors of an expression of moves.

    ``scales`` are rows of lanes that all of them read, ``table`` are the results that a step looks
    up. ``out`` is what the moves are assembled to; of a single move, it may be what that stores.
    """

    moves: Sequence[Move]
    scales: Tensor
    out: Tensor
    table: Tensor | None = None


@dataclass(frozen=True)
class Moves(Held[N, MoveTile]):
    """Copies of tensors of ``rows`` rows: of each as many ``pixels``, of ``vectors`` vectors each.

    What is a row and a pixel is the template's: pixels of a row lie side by side in DRAM, and rows
    of an operand one behind another.
    """

    TILE = MoveTile

    rows: int
    pixels: tuple[int, ...]
    vectors: int

    @abstractmethod
    def expression(self, config: Config) -> MoveTensors:
        """Expression of the move: the tensors that are moved, and the places that they are moved
        to.
        """

    @property
    def grown(self) -> tuple[int, int]:
        """Number of times that an operand's row is stored, and its pixels in a row."""
        return 1, 1

    @property
    def alu_steps(self) -> int:
        """Operations of the ALU per vector that is loaded."""
        return self.grown[1] if self.grown[1] > 1 else 0

    @property
    def multiplications(self) -> int:
        """Operations of the ALU per vector that multiply or shift."""
        return 0

    def loaded(self, tile: MoveTile) -> int:
        """Vectors that a tile loads."""
        return tile.rows * tile.pixels * self.vectors

    @property
    def wanted(self) -> str:
        """The noun with its article."""
        return with_article(self.NOUN)

    def sizes(
        self, config: Config, vthreads: int, only: MoveTile | None = None
    ) -> Iterator[MoveTile]:
        """Whole rows, or parts of one row.

        The longest operand has a tile for each thread: the next operand begins with the first.
        """
        most = max(self.pixels)
        whole = [(rows, most) for rows in parts(self.rows)]
        cut = [(1, pixels) for pixels in parts(most)[:-1]]
        for rows, pixels in [*whole, *cut]:
            if ceil_div(self.rows, rows) * ceil_div(most, pixels) >= vthreads:
                yield MoveTile(rows, pixels, vthreads)

    def cost(self, tile: MoveTile, config: Config) -> TileCost:
        """One load, and stores of all that becomes of it, per tile of the longest operand."""
        (rows, columns), entries = self.grown, tile.rows * tile.pixels * self.vectors
        size, read = entries * config.out_entry, self.loaded(tile) * config.out_entry
        load = transfer(read, read, config)
        alu = entries * self.alu_steps + group_cycles(entries * self.multiplications, config)
        store = rows * transfer(size * columns, self.run(tile) * config.out_entry, config)
        tiles = sum(ceil_div(self.rows, tile.rows) * ceil_div(n, tile.pixels) for n in self.pixels)
        share = shares(tiles, tiles, tile.vthreads)
        return TileCost(*share, inp=load, alu=alu, store=store, shared=False, pace=pace(config))

    @abstractmethod
    def run(self, tile: MoveTile) -> int:
        """Vectors that a STORE writes side by side."""

    def schedule(self, tile: MoveTile, config: Config) -> Schedule:
        """Each operand in tiles: loaded, and stored while the next one is loaded."""
        ins, e = intrinsics(config), self.expression(config)
        s = create_schedule(e.out, self._params(e), self.NAME)
        scales = s.cache_read(e.scales, ACC, [move.stored for move in e.moves])
        s[scales].tensorize(s[scales].axis[-1], ins.load_acc)
        if e.table is not None:
            users = [t for move in e.moves for t, _ in move.steps]
            table = s.cache_read(e.table, TAB, [t for t in users if e.table in t.compute_op.inputs])
            s[table].tensorize(s[table].axis[-1], ins.load_tab)
        for move in e.moves:
            rows, pixels, *rest = s[move.stored].axis
            rest = [axis for axis in rest if axis not in move.again]
            if tile.rows == 1:
                outer, inner = s[move.stored].split(pixels, min(tile.pixels, move.stored.shape[1]))
                s[move.stored].reorder(rows, outer, *move.again, inner, *rest)
            else:
                outer, inner = s[move.stored].split(rows, factor=tile.rows)
                s[move.stored].reorder(outer, *move.again, inner, pixels, *rest)
            s[move.stored].bind(outer, te.thread_axis("vthread", tile.vthreads))
            for step, _ in move.steps:
                s[step].set_scope(ACC)
            for step, intrin in move.steps:
                s[step].compute_at(s[move.stored], outer)
                s[step].tensorize(s[step].axis[-1], intrin)
            s[move.stored].tensorize(rest[-1], ins.store8)
        return s

    @staticmethod
    def _params(e: MoveTensors) -> list[Tensor]:
        """Tensors that an expression reads, in calling order."""
        read = [tensor for move in e.moves for tensor in (move.data, *move.others)]
        return [*read, e.scales] if e.table is None else [*read, e.table, e.scales]


def plain(value: Expr, scale: Expr) -> Expr:
    """An int8 out of ACC as it came in, by way of a scale of 1."""
    return te.requantize(value, scale, 0, -128, 127).astype("int8")


def ones(config: Config) -> Array:
    """Scales of 1 for all lanes."""
    return one_scale(1.0, config)
