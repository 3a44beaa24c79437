"""Cycles that a tile takes: an analytic model.

A step's work goes from engine to engine: ``expand`` (COMPUTE), its result to INP (STORE),
``filter`` (COMPUTE), its result to INP (STORE), ``project`` (COMPUTE). Virtual threads run the
steps of a group side by side, phase by phase, so that STORE works for one while COMPUTE does for
another. A tile's numbers may be columns, with an entry for each of many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from vdla.compiler.targets.accelerator.operators.access import Size
from vdla.compiler.targets.accelerator.operators.cost import (
    STARTUP,
    TURN,
    fetch,
    group_cycles,
    pace,
)
from vdla.compiler.targets.accelerator.operators.separable.kept import Layout
from vdla.compiler.targets.accelerator.operators.separable.sizes import PORTIONS, SeparableTile
from vdla.isa.config import Config

STORE_SHARE = 1.1  # STORE's work to the time it takes: others use INP's port and the bus, too


@dataclass(frozen=True)
class Step:
    """Cycles of one step's phases: COMPUTE's three, and STORE's after the first two."""

    expand: Size
    widen: Size
    filter: Size
    narrow: Size
    project: Size


class Model:
    """Tiles of one size on one config."""

    def __init__(self, layout: Layout, config: Config) -> None:
        self.layout, self.shape, self.config = layout, layout.shape, config
        entry = config.out_entry
        self.out_beats = entry / config.bytes_per_cycle * pace(config)

    def cycles(self, tile: SeparableTile) -> Size:
        """Cycles of all tiles, those at the edges being smaller."""
        s = self.shape
        total: Size = 0.0
        for rows, down in _shares(s.out_height, tile.rows):
            for cols, across in _shares(s.out_width, tile.cols):
                part = replace(tile, rows=rows, cols=cols)
                cycles = self._tile_cycles(part, self.layout.seen(part))
                total = total + s.batch * down * across * cycles
        return total + self._ends(tile, self.layout.seen(tile))

    def _tile_cycles(self, tile: SeparableTile, seen: Size) -> Size:
        """A tile takes what its busiest engine or the bus takes, and the waits; it has ``seen``
        pixels of data."""
        s, steps, step = self.shape, self.shape.blocks // tile.blocks, self._step(tile, seen)
        pixels = tile.rows * tile.cols
        vectors = 2 * pixels * s.outputs if s.residual else 0.0  # each is multiplied
        added = vectors + group_cycles(vectors, self.config)
        compute = steps * (step.expand + step.filter + step.project) + added
        out = self._out(tile)
        store = steps * (step.widen + (step.narrow if s.outputs else 0.0)) + out
        latency = self.config.memory.first_beat + TURN
        if tile.vthreads == 1:
            return compute + store + self._bus(tile, seen) + latency
        bus = self._bus(tile, seen)
        slow = 1 + np.minimum(bus / compute, 1.0)  # a result leaves while LOAD has its share
        wait: Size = self._wait(step, slow * out, added) if s.outputs else 0.0
        if s.inputs:  # the next tile's data, if in the same place, comes behind the last expansion
            late = self._data(seen) + latency - 2 * (step.filter + step.project)
            wait = wait + np.where(np.equal(tile.stages, 1), np.maximum(late, 0.0), 0.0)
        busiest = np.maximum(compute + wait, np.maximum(STORE_SHARE * store, bus))
        return busiest + steps * STARTUP

    def _ends(self, tile: SeparableTile, seen: Size) -> Size:
        """Cycles that the first tile waits and that the last one adds."""
        latency, step = self.config.memory.first_beat + TURN, self._step(tile, seen)
        if tile.vthreads == 1:
            return latency
        ends = step.expand + step.widen + step.filter + step.narrow + 2 * latency
        return ends + (self._out(tile) if self.shape.outputs else 0.0)

    def _out(self, tile: SeparableTile) -> Size:
        """STORE's cycles for a tile's result."""
        return tile.rows * tile.cols * self.out_beats * (self.shape.outputs or self.shape.blocks)

    def _wait(self, step: Step, out: Size, added: Size) -> Size:
        """Cycles that a tile's first sums wait while those of the tile before, which lie in the
        same place, are stored portion by portion."""
        product = step.project / PORTIONS
        stored: Size = 0.0
        free = (PORTIONS - 1) * product + step.expand + step.filter + added
        last = free + step.project
        for number in range(PORTIONS):
            stored = np.maximum(stored, number * product) + out / PORTIONS
            free = np.maximum(free, stored) + product
        return free - last

    def _step(self, tile: SeparableTile, seen: Size) -> Step:
        """The phases of one step."""
        s = self.shape
        widen = tile.blocks * seen * self.out_beats if s.inputs else 0.0
        pixels = tile.rows * tile.cols
        return Step(
            tile.blocks * seen * s.inputs,
            widen,
            tile.blocks * tile.rows * (tile.cols + self.layout.fills) * s.micro_ops,
            tile.blocks * pixels * self.out_beats,
            tile.blocks * pixels * s.outputs,
        )  # fmt: skip

    def _bus(self, tile: SeparableTile, seen: Size) -> Size:
        """Cycles of the bus for one tile."""
        s, c, pixels = self.shape, self.config, tile.rows * tile.cols
        whole = sum(prod(sums.weight.shape) for sums in self.layout.tensors.sums)
        weights = np.where(tile.resident, 0, whole)
        moved = (s.outputs or s.blocks) * pixels * c.out_entry * (2 if s.residual else 1)
        steps = s.blocks // tile.blocks
        fetched = fetch(steps * (12 if s.outputs else 6), c)
        return (weights + moved) / c.bytes_per_cycle + self._data(seen) + fetched

    def _data(self, seen: Size) -> Size:
        """Cycles of the bus to load a tile's data."""
        moved = (self.shape.inputs or self.shape.blocks) * seen * self.config.inp_entry
        return moved / self.config.bytes_per_cycle


def _shares(size: int, part: int) -> Iterator[tuple[int, int]]:
    """The sizes of the parts that a length is cut into, and how many have each; columns where
    ``part`` is one."""
    yield part, size // part
    rest = size % part
    yield np.maximum(rest, 1), np.minimum(rest, 1)
