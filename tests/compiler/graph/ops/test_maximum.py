"""The greater of two quantized tensors, each of which is rounded first."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, narrowed, numbers

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.maximum import QMaximum
from vdla.compiler.graph.types import Requant

PAIR = {**NAMES, "a": "a", "b": "b"}


@pytest.mark.parametrize("scales", [(0.7, 0.7), (0.7, 1.3)])
def test_the_greater_one(scales):
    a, b = (numbers("int8", (2, 5, 3), -128, 128) for _ in range(2))
    requant = Requant(scales, 1, -120, 99)
    result = check(QMaximum(**PAIR, zeros=(3, -8), requant=requant), a, b)
    left = narrowed(a.astype(int) - 3, scales[0], requant)
    right = narrowed(b.astype(int) + 8, scales[1], requant)
    np.testing.assert_array_equal(result, np.where(left > right, left, right))


def test_one_shape():
    node = QMaximum(**PAIR, zeros=(0, 0), requant=Requant((1.0, 1.0), 0))
    with pytest.raises(GraphError, match=r"n \(QMaximum\): expected "):
        node.result_shape([(2, 3), (3, 2)])
