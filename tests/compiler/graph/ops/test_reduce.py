"""Results of many elements: compiled code gives what numpy does."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, check, numbers

from vdla.compiler.graph import ops

F = np.float32


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(("function", "dtype"), [
    ("sum", "float32"), ("mean", "float16"), ("max", "bool"), ("min", "int64"), ("prod", "uint8"),
])  # fmt: skip
def test_reductions(function, dtype, axes, keep):
    node = ops.Reduce(**NAMES, data="x", function=function, axes=axes, keepdims=keep)
    check(node, numbers(dtype, (2, 3, 4)), rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_where_the_best_are(largest, last):
    x = numbers("int32", (3, 7, 2), 0, 3)
    node = ops.ArgReduce(**NAMES, data="x", axis=1, largest=largest, last=last)
    check(node, x, dtype="int64")
    check(node, np.full((1, 3, 1), -np.inf, F), dtype="int64")
