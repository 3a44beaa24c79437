"""Zero tiles of weights, against a loop over them."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.graph.zero_tiles import zero_share, zero_tiles


@pytest.mark.parametrize("shape", [(32, 48), (33, 17), (5, 70, 3, 3), (1, 1)])
def test_tiles_are_zero_where_no_value_is_another(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    weight = (rng.random(shape) < 0.004) * rng.integers(-8, 8, shape)
    found = zero_tiles(weight, 16, 8)
    for at in np.ndindex(found.shape):
        o, i, *tap = at
        tile = weight[(slice(16 * o, 16 * o + 16), slice(8 * i, 8 * i + 8), *tap)]
        assert found[at] == (not np.count_nonzero(tile)), at
    assert found.shape == (-(-shape[0] // 16), -(-shape[1] // 8), *shape[2:])


def test_share_counts_tiles() -> None:
    weight = np.zeros((32, 48), np.int8)
    weight[0, 47] = 1
    assert zero_share(weight, 16, 16) == 5 / 6
    assert zero_share(weight[:0], 16, 16) == 0.0
