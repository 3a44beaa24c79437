"""Sparse constants of TFLite, as ``SparsityParameters`` of its ``schema.fbs`` describes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from vdla.compiler.graph.types import Array


@dataclass(frozen=True)
class Level:
    """One axis of a sparse tensor, in the order of its storage.

    A dense axis has ``size`` elements. Of a sparse one, ``segments`` says where the elements below
    each of the level before begin in ``indices``, which says where they are.
    """

    size: int | None
    segments: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    indices: Array = field(default_factory=lambda: np.zeros(0, np.int64))


def dense(
    values: Array,
    shape: Sequence[int],
    order: Sequence[int],
    blocks: Sequence[int],
    levels: Sequence[Level],
) -> Array:
    """The dense form of a sparse tensor, of ``shape``.

    Args:
        values: the elements that the file has, in the order of ``levels``.
        shape: the tensor's sizes.
        order: which axis each level is; those beyond the tensor's are axes of a block.
        blocks: which of the tensor's axes each axis of a block divides.
        levels: the axes, outermost first.

    Raises:
        ValueError: they don't fit each other.
        IndexError: they lead outside the tensor.
    """
    if sorted(order) != list(range(len(levels))) or len(levels) != len(shape) + len(blocks):
        raise ValueError(f"an order {list(order)} of {len(levels)} levels")
    places, parent = np.zeros((1, 0), np.int64), np.zeros(1, np.int64)
    for level in levels:
        places, parent = _below(places, parent, level, prod(shape))
    if len(places) > len(values):
        raise ValueError(f"{len(values)} elements for {len(places)} places")
    rank = len(shape)
    axes = {axis: places[:, number] for number, axis in enumerate(order)}
    index = [axes[axis] for axis in range(rank)]
    for number, axis in enumerate(blocks):
        size = levels[list(order).index(rank + number)].size
        if size is None:
            raise ValueError("a block with a sparse axis")
        index[axis] = index[axis] * size + axes[rank + number]
    result = np.zeros(tuple(shape), values.dtype)
    result[tuple(index)] = values[: len(places)]
    return result


def _below(places: Array, parent: Array, level: Level, limit: int) -> tuple[Array, Array]:
    """Places [n, axes + 1] one level deeper, and their numbers in it."""
    if level.size is not None:
        if level.size < 0 or len(places) * level.size > limit:
            raise ValueError(f"{len(places) * level.size} elements")
        counts = np.full(len(places), level.size, np.int64)
        inner = np.tile(np.arange(level.size), len(places))
        number = np.repeat(parent, counts) * level.size + inner
    else:
        first, end = level.segments[parent], level.segments[parent + 1]
        counts = end - first
        if (counts < 0).any() or counts.sum() > limit:
            raise ValueError("segments that don't rise")
        begin = np.cumsum(counts) - counts
        number = np.repeat(first - begin, counts) + np.arange(counts.sum())
        inner = level.indices[number]
    return np.column_stack([np.repeat(places, counts, axis=0), inner]), number
