"""Position of LOAD's write side in its tile: plane, row, entry, beat, and the place in the buffer.

1. Entries of a tile go in the order z, y, x and lie densely in the buffer.
2. Rows and entries before the data and after them are padding, which has no beats.
3. Whether an entry is data, and whether it lies beyond its buffer, is known with it, in registers.
4. What comes after the last entry of a tile, or where the side is free, is the next tile.
"""

from __future__ import annotations

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data

from vdla.hw.load.memories import stepped, steps_of_entry, takes_results, times_factor
from vdla.hw.load.tiles import Tiles
from vdla.hw.loops import Countdown, Loop
from vdla.isa.config import Config


class Axis(Countdown):
    """Rows or entries of a tile, and whether the one that is due is data or padding.

    ``left`` falls: data are those with more than ``after`` left, and no more than ``until``.
    """

    def __init__(self, m: Module, axis: str, tile: data.View) -> None:
        super().__init__(m, axis, tile[f"{axis}_tile"])
        self.axis = axis
        self.after, self.until = tile[f"{axis}_after"], tile[f"{axis}_until"]
        self.first = tile[f"{axis}_first"]  # whether the first is data
        self.is_data = Signal(name=f"{axis}_is_data")

    def move(self, moves: Value, begins: Value, tile: data.View, inner: Value | int = 1) -> None:
        """``go``, to the first one of ``tile`` if it begins."""
        self.go(moves, begins, tile[f"{self.axis}_tile"], inner)
        less = self.left_after
        follows = (less > self.after) & (less <= self.until)
        following = Mux(self.end, self.first, follows)
        with self.m.If(moves & (begins | inner)):
            self.m.d.sync += self.is_data.eq(Mux(begins, tile[f"{self.axis}_first"], following))


class Position:
    """``entry`` is the place in the buffer, ``beyond`` that there is none, ``is_data`` that it has
    beats, else it is padding; ``last``: no other of this tile follows. ``in_steps``: it is written
    in as many steps as ``beats`` counts, else at once.
    """

    def __init__(self, m: Module, config: Config, tiles: Tiles) -> None:
        self.m, self.config, self.tiles = m, config, tiles
        tile = tiles.tile
        self.x, self.y = (Axis(m, axis, tile) for axis in "xy")
        self.planes = Loop(m, "planes", tile.z_size)
        self.beats = Countdown(m, "beats", steps_of_entry(config, tile.memory))
        self.entry = Signal(len(tile.sram_base) + 1, reset_less=True)
        self.beyond = Signal()
        self.is_data = Signal()
        self.last = Cat(level.end for level in (self.x, self.y, self.planes)).all()
        m.d.comb += self.is_data.eq(self.x.is_data & self.y.is_data)
        self.in_steps: Value = self.is_data
        if stepped(config):
            self.in_steps = self.is_data | takes_results(config, tile.memory)

    def go_on(self, whole: Value, step: Value, unused: Value) -> None:
        """To the next entry if this one is ``whole``, to its next step if one is made.

        ``unused``: no entry of the tile is to be written.
        """
        x, y, following = self.x, self.y, self.tiles.following
        begins, moves = unused | self.last, unused | whole
        begins_beats = unused | (self.last & (self.beats.end | ~self.in_steps))
        steps = steps_of_entry(self.config, following.memory)
        self.beats.go(moves | step, begins_beats, steps, self.in_steps)
        self.planes.go(moves, begins, following.z_size, x.end & y.end)
        x.move(moves, begins, following)
        y.move(moves, begins, following, x.end)
        self.tiles.take(moves, begins)
        self._place(moves, begins)

    def _place(self, moves: Value, begins: Value) -> None:
        m, tile, following = self.m, self.tiles.tile, self.tiles.following
        at = Mux(begins, following.sram_base, self.entry + 1)
        memory = Mux(begins, following.memory, tile.memory)
        depth = times_factor(self.config, memory, Const(1), self.config.depth)
        with m.If(moves):
            m.d.sync += [self.entry.eq(at), self.beyond.eq(at >= depth)]
