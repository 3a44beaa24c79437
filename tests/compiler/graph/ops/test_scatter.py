"""Elements written over others at places that are data."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatters(reduction):
    x = numbers("float32", (4, 3))
    names = {**NAMES, "data": "x", "indices": "i", "updates": "u", "reduction": reduction}
    index = np.array([[0, -1, 2], [3, 1, 1]])
    check(ops.ScatterElements(**names, axis=0), x, index, numbers("float32", (2, 3)))
    place = np.array([[1], [-1]])
    check(ops.ScatterND(**names), x, place, numbers("float32", (2, 3)))
