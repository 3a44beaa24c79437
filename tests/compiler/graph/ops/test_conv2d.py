"""Convolutions of images: compiled code gives what numpy does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nodes import RNG, WINDOWS, check_types

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.types import Requant

F, I8 = "float32", "int8"


@settings(max_examples=10)
@given(
    window=WINDOWS,
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    per_group=st.tuples(st.integers(1, 4), st.integers(1, 3)),
    groups=st.integers(1, 3),
    zero=st.integers(-128, 127),
    residual=st.booleans(),
)
def test_convolutions(window, kernel, per_group, groups, zero, residual):
    size = (8, 7)
    out = [
        (size[i] + window["pads"][i] + window["pads"][i + 2]
         - window["dilations"][i] * (kernel[i] - 1) - 1) // window["strides"][i] + 1
        for i in range(2)
    ]  # fmt: skip
    assume(min(out) > 0)
    c, o = per_group[0] * groups, per_group[1] * groups
    constants = {
        "w": RNG.integers(-128, 128, (o, per_group[0], *kernel)).astype(np.int8),
        "b": RNG.integers(-5000, 5000, o).astype(np.int32),
    }
    scale = tuple(float(np.float32(s)) for s in RNG.uniform(0.0005, 0.02, o))
    values = {
        "name": "n", "data": "x", "weight": "w", "bias": "b", "output": "y", "groups": groups,
        "zeros": (zero,), "requant": Requant(scale, 5, -100, 101), **window,
    }  # fmt: skip
    types = {"x": (I8, 2, c, *size), "y": (I8, 2, o, *out)}
    if residual:
        types["r"] = types["y"]
        total = Requant((0.7, 1.3), 3, 3)
        addition = ops.AddStep(addend="r", zeros=(5, -4), requant=total)
        node = ops.QConv2d(**values, epilogue=(addition,))
    else:
        node = ops.QConv2d(**values)
    check_types(node, types, constants)


def test_float_convolution_and_runtime_weight():
    node = ops.Conv2d(
        name="n", data="x", weight="w", bias="b", output="y", pads=(1, 1, 1, 1), strides=(2, 1)
    )
    types = {"x": (F, 1, 4, 7, 6), "y": (F, 1, 3, 4, 6)}
    w = RNG.standard_normal((3, 4, 3, 3)).astype(np.float32)
    b = RNG.standard_normal(3).astype(np.float32)
    check_types(node, types, {"w": w, "b": b}, exact=False)
    check_types(node, {**types, "w": (F, 3, 4, 3, 3)}, {"b": b}, exact=False)


def conv(**changes):
    names = {"name": "c", "data": "x", "weight": "w", "bias": "b", "output": "y"}
    return ops.QConv2d(**{**names, "zeros": (0,), "requant": Requant((0.5,) * 6, 0), **changes})


def test_convolution_shape():
    node = conv(strides=(2, 1), pads=(1, 0, 2, 1), dilations=(1, 2))
    assert node.result_shape([(3, 4, 8, 9), (6, 4, 3, 3), (6,)]) == (3, 6, 5, 6)


@pytest.mark.parametrize(
    ("node", "shapes", "message"),
    [
        (conv(), [(1, 5, 8, 8), (6, 4, 3, 3), (6,)], "expected 4 input channels, found 5"),
        (conv(), [(1, 4, 8, 8), (6, 4, 3, 3), (5,)], "expected a bias of shape [6], found [5]"),
        (conv(requant=Requant((1.0,), 0)), [(1, 4, 8, 8), (6, 4, 3, 3), (6,)],
         "expected 6 scales, found 1"),
        (conv(), [(1, 4, 8, 8), (6, 4, 3), (6,)], "expected a weight of shape [O, I, KH, KW], "
         "found [6, 4, 3]"),
    ],
)  # fmt: skip
def test_convolution_errors(node, shapes, message):
    with pytest.raises(GraphError) as caught:
        node.result_shape(shapes)
    assert str(caught.value) == f"node c (QConv2d): {message}"
