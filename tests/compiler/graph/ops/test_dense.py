"""Dense layers: compiled code gives what numpy does."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import RNG, check_types

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.types import Requant

F, I8 = "float32", "int8"


@pytest.mark.parametrize("data", [(3, 40), (3, 40, 1, 1)])
def test_dense(data):
    constants = {
        "w": RNG.integers(-128, 128, (9, 40)).astype(np.int8),
        "b": RNG.integers(-5000, 5000, 9).astype(np.int32),
    }
    node = ops.QDense(
        name="n", data="x", weight="w", bias="b", output="y", zeros=(-7,),
        requant=Requant((0.003,) * 9, 2, -120),
    )  # fmt: skip
    check_types(node, {"x": (I8, *data), "y": (I8, 3, 9)}, constants)


def test_float_dense():
    node = ops.Dense(name="n", data="x", weight="w", output="y")
    w = RNG.standard_normal((9, 40)).astype(np.float32)
    check_types(node, {"x": (F, 3, 40), "y": (F, 3, 9)}, {"w": w}, exact=False)


def test_dense_takes_a_pooled_image():
    node = ops.QDense(
        name="d",
        data="x",
        weight="w",
        bias="b",
        output="y",
        zeros=(0,),
        requant=Requant((1.0,) * 3, 0),
    )
    assert node.result_shape([(2, 8, 1, 1), (3, 8), (3,)]) == (2, 3)
    with pytest.raises(GraphError, match=r"expected data of shape \[N, 8\], found \[2, 8, 2, 1\]"):
        node.result_shape([(2, 8, 2, 1), (3, 8), (3,)])
