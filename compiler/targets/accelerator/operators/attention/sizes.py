"""The sizes of attention, and its tiles."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

LATER = 5  # parts of a step before it takes values: scores, softmax, two STOREs and their exchange
Limits = tuple[int, int, int]  # of a requantization: its zero point, the lowest and the highest


@dataclass(frozen=True)
class AttentionTile(Tile):
    """A tile is a block of queries; INP has room for the keys of ``key_copies`` heads, WGT for the
    values of ``value_copies``."""

    key_copies: int
    value_copies: int
    vthreads: int = 1


@dataclass(frozen=True)
class AttentionSizes:
    """``heads`` times ``queries`` that attend to ``keys`` of ``channels``, each with ``values``.

    Of keys, queries, shares and values the zero points, of scores, shares and the result the limits
    of their requantization; ``factor`` and ``shift`` are the softmax's.
    """

    heads: int
    channels: int
    keys: int
    queries: int
    values: int
    key_zero: int
    query_zero: int
    share_zero: int
    value_zero: int
    scored: Limits
    factor: int
    shift: int
    shared: Limits
    mixed: Limits

    def blocks(self, lanes: int) -> tuple[int, int, int, int]:
        """Blocks of channels, keys, queries and values."""
        sizes = self.channels, self.keys, self.queries, self.values
        channels, keys, queries, values = (ceil_div(size, lanes) for size in sizes)
        return channels, keys, queries, values

    def heads_at_a_time(self, lanes: int) -> int:
        """Heads whose values are on chip when the parts of blocks of queries run side by side:
        when a block begins, those ``LATER`` before it haven't read theirs."""
        _, _, groups, _ = self.blocks(lanes)
        return min(self.heads, 1 + ceil_div(LATER, groups))

    def key_rows(self, lanes: int) -> int:
        """Pixels of a head's keys as they lie in DRAM, block by block, and those behind the last
        one that fill its last tile."""
        channels, keys, _, _ = self.blocks(lanes)
        return (channels - 1) * self.keys + keys * lanes

    def fits(self, tile: AttentionTile, config: Config) -> bool:
        """Whether the buffers hold a tile: what a part leaves to the next one twice, to the one
        behind that three times."""
        lanes = config.channel_block
        channels, keys, _, values = self.blocks(lanes)
        rows, outs = keys * lanes, values * lanes
        twice, thrice = (2, 3) if tile.vthreads > 1 else (1, 1)
        inp = tile.key_copies * self.key_rows(lanes) + twice * rows + lanes + 1
        wgt = tile.value_copies * keys * values + channels + keys + 1
        of_values = tile.value_copies * values if self.share_zero else 0
        of_keys = rows if self.query_zero else 0
        of_step = thrice * (rows + 3) + twice * rows + thrice * (outs + lanes)
        acc = of_keys + of_values + of_step + keys + 2
        return (
            inp <= config.depth("inp") and wgt <= config.depth("wgt") and acc <= config.depth("acc")
        )
