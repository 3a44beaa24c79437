"""Which tiles the buffers hold, and the cycles that each takes: an analytic model.

A step's work goes from engine to engine: ``expand`` (COMPUTE), its result to INP (STORE),
``filter`` (COMPUTE), its result to INP (STORE), ``project`` (COMPUTE). Virtual threads run the
steps of a group side by side, phase by phase, so that STORE works for one while COMPUTE does for
another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

from vdla.compiler.targets.accelerator.operators.cost import STARTUP, TURN, fetch, parts, sizes
from vdla.compiler.targets.accelerator.operators.separable.sizes import (
    PORTIONS,
    SeparableSizes,
    SeparableTile,
    portion_copies,
)
from vdla.compiler.targets.accelerator.operators.window import padded_fields
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div, divisors

MOST_BLOCKS = 4  # channel blocks of one step that are tried
STORE_SHARE = 1.1  # STORE's work to the time it takes: others use INP's port and the bus, too


@dataclass(frozen=True)
class Step:
    """Cycles of one step's phases: COMPUTE's three, and STORE's after the first two."""

    expand: float
    widen: float
    filter: float
    narrow: float
    project: float


@lru_cache(maxsize=512)
def cheapest_tile(shape: SeparableSizes, config: Config, vthreads: int) -> SeparableTile | None:
    """The tile that takes the fewest cycles by the model; None where the buffers hold none."""
    model = Model(shape, config)
    return min(model.tiles(vthreads), key=model.cycles, default=None)


class Model:
    """Tiles of one size on one config."""

    def __init__(self, shape: SeparableSizes, config: Config) -> None:
        self.shape, self.config = shape, config
        self.out_beats = config.out_entry // config.bytes_per_cycle

    def tiles(self, vthreads: int, only: SeparableTile | None = None) -> Iterator[SeparableTile]:
        """The tiles that the buffers hold, for so many virtual threads."""
        s = self.shape
        rows = sizes(parts(s.out_height), only, "rows")
        cols = sizes(parts(s.out_width), only, "cols")
        most = min(max(s.blocks // vthreads, 1), MOST_BLOCKS)  # so that a tile has several steps
        blocks = [b for b in divisors(s.blocks) if b <= most]
        stages = (1, 2) if s.inputs and vthreads > 1 else (1,)
        knobs = product(rows, cols, sizes(blocks, only, "blocks"), stages, (True, False))
        for high, wide, deep, copies, resident in knobs:
            tile = SeparableTile(high, wide, deep, vthreads, copies, resident)
            if self.fits(tile):
                yield tile

    def fits(self, tile: SeparableTile) -> bool:
        """Whether the buffers hold what lives at a time, and a LOAD's fields the padding."""
        s, c = self.shape, self.config
        down, across, seen = self._image(tile)
        pixels, copies = tile.rows * tile.cols, tile.vthreads * tile.blocks
        image = s.phases * down * across
        inp = copies * (image + (pixels if s.outputs else 0))
        inp += tile.stages * s.inputs * seen if s.inputs else 0
        acc = copies * (tile.rows * (tile.cols + s.taps - 1) + (seen if s.inputs else 0))
        acc += 2 * (s.blocks * (2 if s.inputs else 1) + s.outputs) + (1 if s.residual else 0)
        acc += s.outputs * pixels * (2 if s.residual else 1)
        return (
            inp <= c.depth("inp")
            and self._weights_fit(tile)
            and acc <= c.depth("acc")
            and padded_fields(down, across)
        )

    def _weights_fit(self, tile: SeparableTile) -> bool:
        """Whether WGT holds all weights, or those of the steps that run beside one another."""
        s, c = self.shape, self.config
        if tile.resident:
            return s.blocks * (s.inputs + s.micro_ops + s.outputs) <= c.depth("wgt")
        if s.outputs and tile.vthreads > 1:
            return portion_copies(s, tile, c) > 1
        copies = tile.vthreads * tile.blocks
        return copies * (s.inputs + s.micro_ops + s.outputs) <= c.depth("wgt")

    def _image(self, tile: SeparableTile) -> tuple[int, int, int]:
        """Rows and columns of a tile's image in each phase, and pixels of the data under it."""
        s = self.shape
        down = (tile.rows - 1) * s.strides[0] + (s.kernel[0] - 1) * s.dilations[0] + 1
        if s.taps > 1:
            across = tile.cols + s.portions * s.taps - 1
        else:
            across = (tile.cols - 1) * s.strides[1] + (s.kernel[1] - 1) * s.dilations[1] + 1
        width = across * s.phases
        return down, across, min(down, s.height) * (width if s.phases > 1 else min(width, s.width))

    def cycles(self, tile: SeparableTile) -> float:
        """Cycles of all tiles, those at the edges being smaller."""
        s = self.shape
        total = 0.0
        for rows, down in _shares(s.out_height, tile.rows):
            for cols, across in _shares(s.out_width, tile.cols):
                part = replace(tile, rows=rows, cols=cols)
                total += s.batch * down * across * self._tile_cycles(part)
        return total + self._ends(tile)

    def _tile_cycles(self, tile: SeparableTile) -> float:
        """A tile takes what its busiest engine or the bus takes, and the waits."""
        s, steps, step = self.shape, ceil_div(self.shape.blocks, tile.blocks), self._step(tile)
        pixels = tile.rows * tile.cols
        added = 2 * pixels * s.outputs if s.residual else 0.0
        compute = steps * (step.expand + step.filter + step.project) + added
        out = self._out(tile)
        store = steps * (step.widen + (step.narrow if s.outputs else 0.0)) + out
        latency = self.config.memory.first_beat + TURN
        if tile.vthreads == 1:
            return compute + store + self._bus(tile) + latency
        bus = self._bus(tile)
        slow = 1 + min(bus / compute, 1.0)  # a result leaves while LOAD has its share of the bus
        wait = self._wait(step, slow * out, added) if s.outputs else 0.0
        if s.inputs and tile.stages == 1:  # the next tile's data comes behind the last expansion
            wait += max(self._data(tile) + latency - 2 * (step.filter + step.project), 0.0)
        return max(compute + wait, STORE_SHARE * store, bus) + steps * STARTUP

    def _ends(self, tile: SeparableTile) -> float:
        """Cycles that the first tile waits and that the last one adds."""
        latency, step = self.config.memory.first_beat + TURN, self._step(tile)
        if tile.vthreads == 1:
            return latency
        ends = step.expand + step.widen + step.filter + step.narrow + 2 * latency
        return ends + (self._out(tile) if self.shape.outputs else 0.0)

    def _out(self, tile: SeparableTile) -> float:
        """STORE's cycles for a tile's result."""
        return tile.rows * tile.cols * self.out_beats * (self.shape.outputs or self.shape.blocks)

    def _wait(self, step: Step, out: float, added: float) -> float:
        """Cycles that a tile's first sums wait while those of the tile before, which lie in the
        same place, are stored portion by portion."""
        product, stored = step.project / PORTIONS, 0.0
        free = (PORTIONS - 1) * product + step.expand + step.filter + added
        last = free + step.project
        for number in range(PORTIONS):
            stored = max(stored, number * product) + out / PORTIONS
            free = max(free, stored) + product
        return free - last

    def _step(self, tile: SeparableTile) -> Step:
        """The phases of one step."""
        s = self.shape
        _, _, seen = self._image(tile)
        widen = tile.blocks * seen * self.out_beats if s.inputs else 0.0
        pixels = tile.rows * tile.cols
        return Step(
            tile.blocks * seen * s.inputs,
            widen,
            tile.blocks * tile.rows * (tile.cols + s.taps - 1) * s.micro_ops,
            tile.blocks * pixels * self.out_beats,
            tile.blocks * pixels * s.outputs,
        )  # fmt: skip

    def _bus(self, tile: SeparableTile) -> float:
        """Cycles of the bus for one tile."""
        s, c, pixels = self.shape, self.config, tile.rows * tile.cols
        weights = 0 if tile.resident else s.blocks * (s.inputs + s.micro_ops + s.outputs)
        weights *= c.wgt_entry
        moved = (s.outputs or s.blocks) * pixels * c.out_entry * (2 if s.residual else 1)
        steps = ceil_div(s.blocks, tile.blocks)
        fetched = float(fetch(steps * (12 if s.outputs else 6), c))
        return (weights + moved) / c.bytes_per_cycle + self._data(tile) + fetched

    def _data(self, tile: SeparableTile) -> float:
        """Cycles of the bus to load a tile's data."""
        _, _, seen = self._image(tile)
        moved = (self.shape.inputs or self.shape.blocks) * seen * self.config.inp_entry
        return moved / self.config.bytes_per_cycle


def _shares(size: int, part: int) -> list[tuple[int, int]]:
    """The sizes of the parts that a length is cut into, and how many have each."""
    whole, rest = divmod(size, part)
    return [each for each in ((part, whole), (rest, 1)) if all(each)]
