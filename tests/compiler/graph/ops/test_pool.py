"""Pools over images: compiled code gives what numpy does."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nodes import WINDOWS, check_types

from vdla.compiler.graph import ops
from vdla.compiler.graph.numbers import pool_scale
from vdla.compiler.graph.types import Requant

F, I8 = "float32", "int8"


@settings(max_examples=8)
@given(window=WINDOWS, kernel=st.tuples(st.integers(2, 4), st.integers(2, 4)), pad=st.booleans())
def test_pools(window, kernel, pad):
    window = {**window, "pads": tuple(min(p, 1) for p in window["pads"])}
    out = [
        (8 + window["pads"][i] + window["pads"][i + 2]
         - window["dilations"][i] * (kernel[i] - 1) - 1) // window["strides"][i] + 1
        for i in range(2)
    ]  # fmt: skip
    assume(min(out) > 0)
    common = {"name": "n", "data": "x", "output": "y", "kernel": kernel, **window}
    integer = {"x": (I8, 1, 3, 8, 8), "y": (I8, 1, 3, *out)}
    real = {"x": (F, 1, 3, 8, 8), "y": (F, 1, 3, *out)}
    check_types(ops.QMaxPool(**common), integer)
    check_types(ops.MaxPool(**common), real)
    mean = ops.AvgPool(**common, include_pad=pad)
    requant = Requant((pool_scale(0.11, 0.07, mean.multiple((1, 3, 8, 8))),), -2)
    check_types(ops.QAvgPool(**mean.values(), zeros=(3,), requant=requant), integer)
    check_types(mean, real, exact=False)
