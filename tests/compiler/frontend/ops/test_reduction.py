"""Operators of many elements to one."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_operators import check_operator
from quantized_models import same_results, single


@pytest.mark.parametrize(("op", "operands", "constants", "attributes"), [
    ("CumSum", "xa", {"a": -2}, {"reverse": 1}),
    ("ReduceMean", "xa", {"a": [-1, 0]}, {"keepdims": 0}),
    ("ReduceLogSumExp", "xa", {"a": [1]}, {}),
    ("ReduceL2", "xa", {"a": [1]}, {}),
    ("ReduceL1", "xa", {"a": [0, 2]}, {"keepdims": 0}),
    ("ReduceSumSquare", "xa", {"a": [-1]}, {}),
    ("ReduceProd", "xa", {"a": [1]}, {}),
    ("ReduceMin", "x", {}, {}),
    ("ArgMax", "x", {}, {"axis": 2, "select_last_index": 1}),
    ("ArgMin", "x", {}, {"axis": 1, "keepdims": 0}),
    ("Hardmax", "x", {}, {"axis": 1}),
])  # fmt: skip
def test_operators(op, operands, constants, attributes):
    check_operator(op, operands, constants, attributes)


@pytest.mark.parametrize(("keep", "shape"), [(1, (1, 4, 1, 1)), (0, (1, 4))])
def test_reduce_mean(keep, shape):
    same_results(single("ReduceMean", shape, axes=[2, 3], keepdims=keep))
    extra = {"axes": np.array([-2, -1])}
    same_results(
        single("ReduceMean", shape, extra=["axes"], constants=extra, opset=18, keepdims=keep)
    )
