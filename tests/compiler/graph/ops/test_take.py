"""Elements from other places, which are known at compile time."""

from __future__ import annotations

import pytest
from nodes import IMAGE, NAMES, check, check_types, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError

I8 = "int8"


@pytest.mark.parametrize("table", [
    (0, 1, 2, 3), (3, 2, 1, 0), (1, 3), (-1, -1, 0, 1, 2, -1), (0, 0, 3, 1), (2, -1, 1), (-1, -1),
])  # fmt: skip
def test_elements_from_other_places(table):
    node = ops.Take(**NAMES, data="x", shape=(2, len(table)), places=(1, 0, *table), fill=7.0)
    check(node, numbers("int64", (2, 4)))
    check(node, numbers("float16", (2, 4)))
    with pytest.raises(GraphError, match="expected places below"):
        node.result_shape([(1, 4)])


def test_larger_images():
    n, c, h, w = IMAGE
    out = n, c, 2 * h, 3 * w
    places = *range(n), *range(c), *(i // 2 for i in range(2 * h)), *(i // 3 for i in range(3 * w))
    node = ops.QTake(name="n", data="x", output="y", shape=out, places=places)
    check_types(node, {"x": (I8, *IMAGE), "y": (I8, *out)})
