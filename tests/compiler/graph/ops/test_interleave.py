"""Images whose pixels take turns in a larger one."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError


@pytest.mark.parametrize(("rows", "columns"), [(1, 2), (2, 1), (2, 2), (2, 3)])
@pytest.mark.parametrize(
    ("kind", "dtype"), [(ops.QInterleave, "int8"), (ops.Interleave, "float32")]
)
def test_turns(kind, dtype, rows, columns):
    parts = [numbers(dtype, (2, 3, 4, 5)) for _ in range(rows * columns)]
    names = tuple(f"p{n}" for n in range(len(parts)))
    result = check(kind(**NAMES, parts=names, rows=rows, columns=columns), *parts)
    for *at, y, x in np.ndindex(result.shape):
        part = parts[y % rows * columns + x % columns]
        assert result[(*at, y, x)] == part[(*at, y // rows, x // columns)]


@pytest.mark.parametrize(
    "shapes", [[(1, 2, 3, 4)], [(1, 2, 3, 4), (1, 2, 3, 5)], [(2, 3), (2, 3)]], ids=str
)
def test_others_take_no_turns(shapes):
    node = ops.QInterleave(**NAMES, parts=("a", "b"), rows=1, columns=2)
    with pytest.raises(GraphError, match=r"n \(QInterleave\): expected 2 images of one shape"):
        node.result_shape(shapes)
