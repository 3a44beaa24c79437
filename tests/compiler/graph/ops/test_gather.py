"""Elements from places that are data."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, RNG, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError


def test_gathers():
    x, low = numbers("float32", (3, 4, 2)), np.array([[0, -1], [2, 9]])  # 9 is beyond: the last
    check(ops.Gather(**NAMES, data="x", indices="i", axis=1), x, low)
    check(ops.Gather(**NAMES, data="x", indices="i", axis=0), x, np.array(-2, np.int32))
    index = RNG.integers(-4, 4, (2, 5, 2))
    check(ops.GatherElements(**NAMES, data="x", indices="i", axis=1), x, index)
    check(ops.GatherND(**NAMES, data="x", indices="i"), x, np.array([[0, 1], [2, -1]]))
    check(ops.GatherND(**NAMES, data="x", indices="i", batch=1), x, np.array([[0], [2], [-1]]))
    with pytest.raises(GraphError, match="expected indices into"):
        ops.GatherND(**NAMES, data="x", indices="i").result_shape([(3,), (2, 2)])


def test_indices_beyond_the_other_axes():
    node = ops.GatherElements(**NAMES, data="x", indices="i", axis=1)
    with pytest.raises(GraphError, match=r"expected indices within \[3, 4\], found \[5, 2\]"):
        node.result_shape([(3, 4), (5, 2)])
