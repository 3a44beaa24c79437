"""The sizes of a block-sparse convolution, and the knobs of its tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d
from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div


@dataclass(frozen=True)
class SparseTile(Tile):
    """Vectors of outputs that ACC holds at a time, and weight tiles of one LOAD.

    With several ``vthreads`` both have a second copy on chip, so that one loads while the other one
    computes.
    """

    vectors: int
    weights: int
    vthreads: int = 1


@dataclass(frozen=True)
class SparseSizes:
    """A convolution or dense layer of which some weight tiles are left out.

    ``dense`` is the layer with all of them. ``kept`` are, for each vector of output channels, the
    numbers of the tiles that it has, in the dense order: input block, part of a block, row and
    column of the window. Each has at least one, which starts from the biases.
    """

    dense: Conv2d
    kept: tuple[tuple[int, ...], ...]

    @cached_property
    def count(self) -> int:
        """Weight tiles that are kept."""
        return sum(map(len, self.kept))

    @property
    def pixels(self) -> int:
        """Vectors of a channel block's part in the result."""
        return self.dense.batch * self.dense.out_height * self.dense.out_width

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width of the image on chip."""
        top, left, bottom, right = self.dense.pads
        return self.dense.height + top + bottom, self.dense.width + left + right

    def parts(self, config: Config) -> int:
        """Vectors of INP in a channel block."""
        return config.channel_block // config.block_in

    def inputs(self, config: Config) -> int:
        """Entries of INP that hold the data, with its padding."""
        tall, wide = self.padded
        return self.dense.batch * self.dense.inputs * tall * wide * self.parts(config)

    def source(self, tile: int, config: Config) -> int:
        """Entry of INP that a weight tile reads for the first pixel, by its number."""
        (kh, kw), (dy, dx) = self.dense.kernel, self.dense.dilations
        tall, wide = self.padded
        block, tap = divmod(tile, kh * kw)
        (channel, part), (y, x) = divmod(block, self.parts(config)), divmod(tap, kw)
        pixel = (channel * tall + y * dy) * wide + x * dx
        return pixel * self.parts(config) + part

    def is_held(self, config: Config) -> bool:
        """Whether the buffers hold the data and the results of one vector of channels, and one LOAD
        can pad an image."""
        tall, wide = self.padded
        data_fits = self.inputs(config) <= config.depth("inp")
        sums_fit = self.pixels + 2 <= config.depth("acc")
        window_pads = bool(self.dense.paddable(tall, wide, self.parts(config)))
        return data_fits and sums_fit and window_pads

    def tile(self, config: Config, vthreads: int) -> SparseTile:
        """The tile for so many virtual threads: few large ones, and LOADs that are short beside the
        whole and whose micro-ops fit."""
        room, rows = config.depth("acc") // (self.pixels + 2), len(self.kept)
        if rows > room:
            room //= vthreads
            rows = ceil_div(rows, ceil_div(rows, max(room, 1)))
        most = min(config.depth("wgt"), config.uop_depth) // vthreads
        return SparseTile(rows, max(min(most, ceil_div(self.count, SHARES)), 1), vthreads)

    def portions(self, first: int, last: int) -> list[tuple[int, int]]:
        """Vectors of channels of a tile, begins and ends of what is stored at a time."""
        step = ceil_div(last - first, SHARES)
        return [(begin, min(begin + step, last)) for begin in range(first, last, step)]


SHARES = (
    8  # of the whole: the first LOAD of weights and the last STORE, which nothing hides, are one
)
