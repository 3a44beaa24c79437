"""Steps that a result goes through before it is stored."""

from __future__ import annotations

import pytest

from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.types import Requant


def conv(**changes):
    names = {"name": "c", "data": "x", "weight": "w", "bias": "b", "output": "y"}
    return ops.QConv2d(**{**names, "zeros": (0,), "requant": Requant((0.5,) * 6, 0), **changes})


def test_residual_must_have_the_result_shape():
    addition = ops.AddStep(addend="r", zeros=(0, 0), requant=Requant((1.0, 1.0), 0))
    node = conv(epilogue=(addition,))
    with pytest.raises(GraphError, match=r"expected an addend of shape \[1, 6, 6, 6\], found"):
        node.result_shape([(1, 4, 8, 8), (6, 4, 3, 3), (6,), (1, 6, 5, 6)])
