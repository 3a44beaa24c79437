"""The window of GEMM: what it adds to a product, what it reads, and how random programs draw it."""

from __future__ import annotations

import numpy as np

from vdla.isa.config import Config
from vdla.isa.instructions import Gemm
from vdla.isa.options.window import (
    has_second_row,
    has_window,
    pitch,
    sees_window,
    window_rows,
    window_taps,
)
from vdla.sim.compiled import inline
from vdla.sim.counts import inp_vectors
from vdla.sim.gemm import add_more, begin_products, clear, copy
from vdla.sim.memories import Int8, Int32, Memories, adds_memory
from vdla.sim.nest import src_reach
from vdla.sim.places import Places
from vdla.sim.random_programs import WINDOW, Generator, gemm_more, gemm_src_more
from vdla.sim.stream import Rows, column

_FLAG, _PITCH = column(Gemm, "window"), column(Gemm, "pitch")


@adds_memory("window")
def make_registers(config: Config) -> Int8:
    """[row, tap, lane] of vectors that were read before."""
    return np.zeros((window_rows(config), window_taps(config), config.block_in), np.int8)


@src_reach.add
def row_pitch(row: Rows) -> int:
    """Distance of the window's second row, if there is one."""
    return int(row[_PITCH]) if row[_FLAG] else 0


@begin_products.add
def empty(row: Rows, of: Memories) -> None:
    """The vectors before the first micro-op are zero."""
    window = of.options.window
    for each in range(window.shape[0] if row[_FLAG] else 0):
        for age in range(window.shape[1]):
            clear(window[each, age])


@add_more.add
def add_window(row: Rows, src: int, tile: Int8, of: Memories) -> None:
    """Products of the lanes that the window fills, in the place of the vector's own."""
    if row[_FLAG]:
        window = of.options.window
        for each in range(window.shape[0]):
            _enter(of.inp[src + each * row[_PITCH]], window[each])
        _replace_products(tile, of.inp[src], window, of.value)


@inline
def _enter(x: Int8, places: Int8) -> None:
    """Puts a vector in front of those of its row, the oldest of which goes."""
    for age in range(places.shape[0] - 1, 0, -1):
        copy(places[age - 1], places[age])
    copy(x, places[0])


@inline
def _replace_products(tile: Int8, x: Int8, window: Int8, value: Int32) -> None:
    """Adds what the window's lanes make and subtracts what the vector's own did: to leave those out
    of the loop over all lanes took ten times as long."""
    rows, taps, lanes = window.shape
    for o in range(value.shape[0]):
        pair = o // 2 * 2
        one, other = pair % lanes, (pair + 1) % lanes
        total = np.int32(0)
        for each in range(rows):
            for age in range(taps):
                i = 2 * (each * taps + age)
                seen = np.int32(window[each, age, one])
                total += np.int32(tile[o, i]) * (seen - np.int32(x[i]))
                seen = np.int32(window[each, age, other])
                total += np.int32(tile[o, i + 1]) * (seen - np.int32(x[i + 1]))
        value[o] += total


@inp_vectors.add
def second_vector(row: Rows, config: Config) -> int:
    """A micro-op that sees two rows reads a second vector of INP."""
    return int(row[_FLAG] != 0 and has_second_row(config))


# Random programs --------------------------------------------------------------------------------


@gemm_more.add
def draw_flag(g: Generator, gemm: Gemm) -> None:
    """Draws whether it sees the window."""
    if has_window(g.config):
        vars(gemm)["window"] = g.rng.randint(0, 1)


@gemm_src_more.add
def draw_pitch(g: Generator, gemm: Gemm, src: Places) -> Places:
    """Draws the pitch: 0, a short one, or one to INP's end; the second row's entries."""
    if not has_second_row(g.config):
        return 0
    if not sees_window(gemm):
        vars(gemm)["pitch"] = g.rng.choice((0, g.highest(Gemm, "pitch")))  # nothing reads it
        return 0
    last = max((src >> g.place["inp"]).bit_length() - 1, 0) + g.largest(gemm, "inp")
    room = g.config.depth("inp") - 1 - last
    vars(gemm)["pitch"] = g.rng.choice((0, g.rng.randint(0, min(room, WINDOW // 2)), room))
    return src << pitch(gemm)
