"""The sizes of a normalization, and its tiles."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.isa.config import Config


@dataclass(frozen=True)
class NormalizeTile(Tile):
    """Blocks of pixels in a tile, channels of a portion, and blocks of channels of which pixels
    are inputs at a time."""

    blocks: int
    channels: int
    inputs: int
    vthreads: int = 1


@dataclass(frozen=True)
class NormalizeSizes:
    """The normalization of ``pixels`` of ``channels`` each, of ``batch`` images; the numbers are
    the node's."""

    batch: int
    channels: int
    pixels: int
    centered: bool
    epsilon: int
    shift: int
    in_zero: int
    zero: int
    low: int
    high: int

    def holds_digits(self, config: Config, vthreads: int, blocks: int) -> bool:
        """Whether INP holds all digits beside so many blocks of pixels for each thread."""
        vectors = (vthreads * blocks + 1) * config.channel_block + 1
        return 2 * self.channels + vectors <= config.depth("inp")

    def resident(self, tile: NormalizeTile, config: Config) -> bool:
        """Whether all digits are loaded once."""
        return self.holds_digits(config, tile.vthreads, tile.blocks * tile.inputs)
