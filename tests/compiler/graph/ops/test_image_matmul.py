"""Products of two images in integers."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.ops.image_matmul import QMatMul, QWideMatMul
from vdla.compiler.graph.types import Requant

F = np.float32


@pytest.mark.parametrize("zeros", [(0, 0), (5, -128)])
def test_products_of_images(zeros):
    a, b = numbers("int8", (2, 5, 1, 7), -128, 128), numbers("int8", (2, 5, 1, 3), -128, 128)
    scale = float(F(0.002))
    node = QMatMul(**NAMES, a="a", b="b", zeros=(zeros[0], zeros[1]), requant=Requant((scale,), -4))
    found = check(node, a, b)
    wide = np.einsum("ncym,ncyo->noym", a - F(zeros[0]), b - F(zeros[1]))
    exact = wide.astype(np.float64) * scale  # in float32, 250 steps of 0.002 would be a tie
    np.testing.assert_array_equal(found, np.clip(np.rint(exact) - 4, -128, 127))


def test_sums_of_products_of_images():
    a, b = numbers("int8", (2, 300, 1, 7), -128, 128), numbers("int8", (2, 300, 1, 3), -128, 128)
    total = check(QWideMatMul(**NAMES, a="a", b="b"), a, b, dtype="int32")
    np.testing.assert_array_equal(
        total, np.einsum("ncym,ncyo->noym", a.astype(np.int64), b.astype(np.int64))
    )


@pytest.mark.parametrize(
    "shapes", [((2, 5, 1, 7), (2, 4, 1, 3)), ((2, 5, 2, 7), (2, 5, 2, 3)), ((2, 5), (2, 5))]
)
def test_images_that_have_no_product(shapes):
    node = QMatMul(**NAMES, a="a", b="b", zeros=(0, 0), requant=Requant((1.0,), 0))
    expected = r"n \(QMatMul\): expected two images \[N, C, 1, W\] of the same channels, found"
    with pytest.raises(GraphError, match=expected):
        node.result_shape(shapes)
