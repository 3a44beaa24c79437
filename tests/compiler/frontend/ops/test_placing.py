"""Operators that take elements from other places."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_operators import F, check_operator, check_refusal


@pytest.mark.parametrize(("op", "operands", "constants", "attributes"), [
    ("Slice", "xabcd", {"a": [5, -1], "b": [0, -9], "c": [1, 2], "d": [-2, -1]}, {}),
    ("Pad", "xa", {"a": [0, 1, 2, 1, 0, -1]}, {"mode": "reflect"}),
    ("Pad", "xa", {"a": [1, 0, 0, 0, 2, 1]}, {"mode": "edge"}),
    ("Pad", "xa", {"a": [1, 0, 0, 0, 2, -1]}, {}),
    ("Tile", "xa", {"a": [2, 1, 3]}, {}),
    ("Expand", "xa", {"a": [2, 1, 6, 4]}, {}),
    ("Gather", "xa", {"a": [[0, -1], [2, 0]]}, {"axis": 2}),
    ("Trilu", "xa", {"a": 1}, {"upper": 0}),
    ("GatherElements", "xa", {"a": [[[0, -1]], [[2, 0]]]}, {"axis": 1}),
    ("GatherND", "xa", {"a": [[0, 1], [2, -1]]}, {}),
    ("ScatterElements", "xab", {"a": [[[1, -1]]], "b": np.ones((1, 1, 2), F)}, {"axis": 1}),
    ("ScatterND", "xab", {"a": [[0, 1], [2, -1]], "b": np.ones((2, 4), F)}, {}),
    ("ReverseSequence", "xa", {"a": [1, 3, 2, 3, 1, 2]}, {"time_axis": 0, "batch_axis": 1}),
])  # fmt: skip
def test_operators(op, operands, constants, attributes):
    check_operator(op, operands, constants, attributes)


@pytest.mark.parametrize(("op", "operands", "dtype", "attributes", "text"), [
    ("Gather", "xi", F, {"axis": 2}, "expected an axis from -2 to 1, found 2"),
    ("Tile", "xi", F, {}, "expected 2 repeats, found 1"),
])  # fmt: skip
def test_refusals(op, operands, dtype, attributes, text):
    check_refusal(op, operands, dtype, attributes, text)
