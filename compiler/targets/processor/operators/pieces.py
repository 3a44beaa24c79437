"""Block-sparse weights in memory: the blocks that aren't zero, one behind another.

A block is 16 outputs by 16 inputs. A row of blocks has as many as it happens to have; its list is
cut in pieces of equally many blocks, so that all loops have ends that are known. The last piece of
a row is filled up with zero blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vdla.compiler.graph.types import Array
from vdla.compiler.graph.zero_tiles import zero_tiles
from vdla.support.numbers import ceil_div

BLOCK = 16  # outputs and inputs of a block
LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32)  # blocks of a piece
BESIDE = 4  # steps of a block's 16 that it takes to store a piece's sums and to add them up


@dataclass(frozen=True)
class Pieces:
    """Blocks of a weight, and where they belong.

    Attributes:
        weights: [P, S, 16 inputs, 16 outputs], the blocks of P pieces.
        columns: int32 [P, S], each block's place among the blocks of inputs.
        places: int32 [O/16, Q], the pieces that are added up for a block of outputs; the last
            piece, which is zero, where it has fewer than Q.
    """

    weights: Array
    columns: Array
    places: Array


def pieces_of(weight: Array, at_once: int) -> Pieces:
    """The blocks of a weight [O, I] that aren't zero, in pieces whose number ``at_once``
    divides."""
    filled = ~zero_tiles(weight, BLOCK, BLOCK)
    counts = filled.sum(axis=1)
    length = _length(counts)
    own = -(-counts // length)  # pieces of each row of blocks
    first = np.cumsum(own) - own
    count, most = int(own.sum()), max(int(own.max()), 1)
    count = ceil_div(count + int(own.min() < most), at_once) * at_once
    o, i = np.nonzero(filled)
    rank = np.arange(len(o)) - (np.cumsum(counts) - counts)[o]
    where = first[o] + rank // length, rank % length
    weights = np.zeros((count, length, BLOCK, BLOCK), weight.dtype)
    columns = np.zeros((count, length), np.int32)
    weights[where] = _blocks(weight)[o, i]
    columns[where] = i
    steps = np.arange(most)
    places = np.where(steps < own[:, None], first[:, None] + steps, count - 1)
    return Pieces(weights, columns, places.astype(np.int32))


def _blocks(weight: Array) -> Array:
    """[O, I] as [O/16, I/16, 16 inputs, 16 outputs], filled up with 0."""
    o, i = weight.shape
    whole = np.pad(weight, [(0, -o % BLOCK), (0, -i % BLOCK)])
    blocks = whole.reshape(ceil_div(o, BLOCK), BLOCK, ceil_div(i, BLOCK), BLOCK)
    return blocks.transpose(0, 2, 3, 1)


def _length(counts: Array) -> int:
    """The blocks of a piece with which rows of so many blocks take the fewest steps."""

    def steps(length: int) -> int:
        own = -(-counts // length)
        return int(own.sum()) * (length * BLOCK + BESIDE) + len(own) * int(own.max())

    return min(LENGTHS, key=steps)
