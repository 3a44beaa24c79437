"""Elements written over others at places that are data."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatters(reduction):
    x = numbers("float32", (4, 3))
    names = {**NAMES, "data": "x", "indices": "i", "updates": "u", "reduction": reduction}
    index = np.array([[0, -1, 2], [3, 1, 1]])
    check(ops.ScatterElements(**names, axis=0), x, index, numbers("float32", (2, 3)))
    place = np.array([[1], [-1]])
    check(ops.ScatterND(**names), x, place, numbers("float32", (2, 3)))


def test_updates_that_do_not_fit():
    names = {**NAMES, "data": "x", "indices": "i", "updates": "u", "reduction": "none"}
    expected = r"expected indices and updates of one shape within \[4, 3\], found "
    with pytest.raises(GraphError, match=expected):
        ops.ScatterElements(**names, axis=0).result_shape([(4, 3), (2, 3), (2, 2)])
    with pytest.raises(GraphError, match=r"expected indices into \[4, 3\] and updates there"):
        ops.ScatterND(**names).result_shape([(4, 3), (2, 1), (2, 4)])
