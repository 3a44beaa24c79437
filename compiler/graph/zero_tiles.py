"""Tiles of a weight that are all zero: what block-sparse code leaves out."""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph.types import Array


def zero_tiles(weight: Array, rows: int, columns: int) -> Array:
    """Which tiles of ``rows`` outputs by ``columns`` inputs have no weight but 0.

    Args:
        weight: [O, I, …].
        rows: the outputs of a tile; a last tile that is cut is filled up with 0.
        columns: its inputs, likewise.

    Returns:
        bool [O/rows, I/columns, …], rounded up.
    """
    o, i, *rest = weight.shape
    high, wide = -o % rows, -i % columns
    whole = np.pad(weight != 0, [(0, high), (0, wide), *[(0, 0)] * len(rest)])
    tiles = whole.reshape((o + high) // rows, rows, (i + wide) // columns, columns, *rest)
    return np.asarray(~tiles.any(axis=(1, 3)))


def zero_share(weight: Array, rows: int, columns: int) -> float:
    """The share of tiles that are all zero, 0 to 1; arguments as of ``zero_tiles``."""
    return float(zero_tiles(weight, rows, columns).mean())
