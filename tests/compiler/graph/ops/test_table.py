"""Functions of int8 that are looked up."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError

NODE = ops.QTable(**NAMES, data="x", table="t")


def test_every_value_has_its_result():
    x = np.arange(-128, 128).astype(np.int8)
    table = numbers("int8", (256,), -128, 128)
    np.testing.assert_array_equal(check(NODE, x, table), table)
    image = numbers("int8", (2, 3, 4, 5), -128, 128)
    wanted = [table[value + 128] for value in image.ravel().tolist()]
    np.testing.assert_array_equal(check(NODE, image, table).ravel(), wanted)


def test_another_table_is_none():
    with pytest.raises(GraphError, match=r"expected a table of shape \[256\], found \[128\]"):
        NODE.result_shape([(2, 3), (128,)])
