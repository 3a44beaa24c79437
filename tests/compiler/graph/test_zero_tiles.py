"""Which tiles of a weight are zero."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.graph.zero_tiles import zero_share, zero_tiles


@pytest.mark.parametrize("shape", [(48, 32), (33, 50), (20, 70), (40, 20, 3, 3), (7, 90, 1, 2)])
@pytest.mark.parametrize("tile", [(16, 16), (4, 8)])
def test_each_tile_by_itself(shape, tile):
    rng = np.random.default_rng(0)
    rows, columns = tile
    weight = rng.choice([-1, 1], shape) * (rng.random(shape) < 1 / (rows * columns))
    found = zero_tiles(weight, rows, columns)
    assert found.shape == (-(-shape[0] // rows), -(-shape[1] // columns), *shape[2:])
    for place in np.ndindex(found.shape):
        o, i, *rest = place
        own = weight[o * rows : (o + 1) * rows, i * columns : (i + 1) * columns]
        assert found[place] == (not own[(..., *rest)].any())
    assert zero_share(weight, rows, columns) == found.mean()
    assert 0 < found.mean() < 1


def test_what_is_not_zero():
    weight = np.zeros((16, 64), np.float32)
    weight[3, 20], weight[15, 47], weight[0, 50] = np.nan, 1e-45, -0.0
    assert zero_tiles(weight, 16, 16).tolist() == [[True, False, False, True]]


def test_no_tiles_are_none():
    assert zero_share(np.zeros((0, 48), np.int8), 16, 16) == 0.0
