"""The schedule space of a separable convolution: which tiles the buffers hold, and the best one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from vdla.compiler.targets.accelerator.description import WGT
from vdla.compiler.targets.accelerator.description.memory import depth
from vdla.compiler.targets.accelerator.operators.cost import Places, parts, sizes
from vdla.compiler.targets.accelerator.operators.separable.cost import Model
from vdla.compiler.targets.accelerator.operators.separable.kept import Layout
from vdla.compiler.targets.accelerator.operators.separable.sizes import (
    SeparableSizes,
    SeparableTile,
)
from vdla.compiler.targets.accelerator.operators.window import padded_fields
from vdla.isa.config import Config
from vdla.support.numbers import divisors

MOST_BLOCKS = 4  # channel blocks of one step that are tried
MOST_COPIES = 16  # of a portion's weights: beyond these, what a LOAD waits for is hidden


@dataclass(frozen=True)
class Best:
    """The tile that takes the fewest cycles by the model, and how many."""

    tile: SeparableTile
    cycles: float


@lru_cache(maxsize=512)
def cheapest_tile(shape: SeparableSizes, config: Config, vthreads: int) -> Best | None:
    """The best tile that the buffers hold, if any; of equals the first."""
    space = Space(shape, config)
    knobs = space.knobs(vthreads)
    if not knobs.shape[1]:
        return None
    cycles = Model(space.layout, config).cycles(_tile(knobs, vthreads))
    assert isinstance(cycles, np.ndarray)
    best = int(np.argmin(cycles))
    return Best(_tile(knobs[:, best].tolist(), vthreads), float(cycles[best]))


class Space:
    """The tiles of one size on one config."""

    def __init__(self, shape: SeparableSizes, config: Config) -> None:
        self.shape, self.config = shape, config
        self.layout = Layout(shape, config.untimed)

    def tiles(self, vthreads: int, only: SeparableTile | None = None) -> Iterator[SeparableTile]:
        """The tiles that the buffers hold, for so many virtual threads."""
        for column in self.knobs(vthreads, only).T.tolist():
            yield _tile(column, vthreads)

    def knobs(self, vthreads: int, only: SeparableTile | None = None) -> Places:
        """[6, n] the numbers of those tiles: rows, cols, blocks, stages, resident and copies."""
        numbers = self._sizes(vthreads, only)
        copies = np.stack([self._copies(numbers, vthreads, resident) for resident in (1, 0)])
        at, kind = np.nonzero(copies.T)
        return np.stack([*numbers[:, at], 1 - kind, copies[kind, at]])

    def _sizes(self, vthreads: int, only: SeparableTile | None) -> Places:
        """[4, n] rows, cols, blocks and stages, these changing first."""
        s = self.shape
        most = min(max(s.blocks // vthreads, 1), MOST_BLOCKS)  # so that a tile has several steps
        choices = [
            sizes(parts(s.out_height), only, "rows"),
            sizes(parts(s.out_width), only, "cols"),
            sizes([b for b in divisors(s.blocks) if b <= most], only, "blocks"),
            (1, 2) if s.inputs and vthreads > 1 else (1,),
        ]
        at = np.indices([len(each) for each in choices]).reshape(4, -1)
        return np.stack([np.array(c, np.int64)[i] for c, i in zip(choices, at, strict=True)])

    def _copies(self, numbers: Places, vthreads: int, resident: int) -> Places:
        """Copies of a portion's weights that the buffers have room for; 0: not for such a tile."""
        tile = _tile((*numbers, resident, 1), vthreads)
        needed = self.layout.entries(tile)
        rows, cols = self.layout.under(tile, "tile")[self.layout.tensors.image][3:5]
        legal = padded_fields(rows, cols)
        for scope, count in needed.items():
            legal &= count <= depth(scope, self.config)
        if resident or vthreads == 1 or not self.shape.outputs:
            return np.where(legal, 1, 0)
        portion = self.layout.entries(replace(tile, copies=2))[WGT] - needed[WGT]
        more = np.minimum((depth(WGT, self.config) - needed[WGT]) // portion, MOST_COPIES - 1)
        return np.where(legal & (more > 0), 1 + more, 0)


def _tile(numbers: Any, vthreads: int) -> SeparableTile:
    """A tile, or one with columns where numbers are columns."""
    rows, cols, blocks, stages, resident, copies = numbers
    return SeparableTile(rows, cols, blocks, vthreads, stages, resident == 1, copies)
