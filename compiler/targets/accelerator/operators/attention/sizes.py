"""The sizes of attention, and its tiles."""

from __future__ import annotations

from dataclasses import dataclass

from vdla.compiler.targets.accelerator.operators.template import Tile
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
