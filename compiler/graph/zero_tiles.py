"""Tiles of a constant weight that are zero: what block-sparse layers leave out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vdla.support.numbers import ceil_div


def zero_tiles(weight: NDArray[np.generic], rows: int, columns: int) -> NDArray[np.bool_]:
    """Array [output blocks, input blocks, ...] that is true where a tile has no other value than 0.

    Args:
        weight: [O, I, ...], whose further axes are a window's; a tile is one of its taps.
        rows: outputs of a tile.
        columns: inputs of a tile. Tiles at the end of an axis may be smaller.
    """
    outs, ins = weight.shape[:2]
    shape = ceil_div(outs, rows), rows, ceil_div(ins, columns), columns, *weight.shape[2:]
    padded = np.zeros((shape[0] * rows, shape[2] * columns, *weight.shape[2:]), np.bool_)
    padded[:outs, :ins] = weight != 0
    counts = np.count_nonzero(padded.reshape(shape), axis=(1, 3))
    result: NDArray[np.bool_] = np.asarray(counts == 0)
    return result


def zero_share(weight: NDArray[np.generic], rows: int, columns: int) -> float:
    """Share of a weight's tiles that are zero, from 0 to 1; 0 where it has none."""
    zero = zero_tiles(weight, rows, columns)
    return float(zero.mean()) if zero.size else 0.0
