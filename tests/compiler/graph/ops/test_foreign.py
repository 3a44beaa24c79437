"""Operators that aren't vdla's own: onnxruntime computes some, users bring the others."""

from __future__ import annotations

import numpy as np
import pytest
from nodes import NAMES, numbers, run_kernel
from onnx import TensorProto, helper

from vdla import te
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import TensorType
from vdla.compiler.user import REGISTERED, OperatorError, register_operator

SHAPE = (2, 3)
FIELDS = {**NAMES, "operands": ("x",), "shape": SHAPE, "dtype": "float32"}
KIND = TensorType(SHAPE, "float32")


def negative() -> bytes:
    """A model of one operator."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.fixture
def weighted():
    """A user's operator, as long as a test takes."""

    def expression(x, weight=1):
        return te.compute(x.shape, lambda *i: x[i] * te.const(float(weight), "float32"), "out")

    yield register_operator("mine::Weighted", expression)
    del REGISTERED["mine::Weighted"]


def test_onnxruntimes():
    node = ops.External(**FIELDS, model=negative(), kinds=("Neg",), reason="a test")
    assert node.result_shape([SHAPE]) == SHAPE
    x = numbers("float32", SHAPE)
    np.testing.assert_array_equal(node.evaluate([x], KIND), -x)


@pytest.mark.parametrize(
    ("count", "name"), [(1, "A0"), (6, "A0+A1+A2+A3+A4+A5"), (8, "A0+A1+A2+A3+A4+A5+2 more")]
)
def test_the_name_has_the_first_ones(count, name):
    kinds = tuple(f"A{n}" for n in range(count))
    assert ops.External(**FIELDS, model=b"", kinds=kinds, reason="").op == name


def test_an_open_output_stands_for_its_results():
    node = ops.Open(
        **{**FIELDS, "shape": (1,)}, model=b"", kinds=("NonZero",), reason="", results=("y",),
        order=("y",),
    )  # fmt: skip
    result = node.evaluate([numbers("float32", SHAPE)], TensorType((1,), "float32"))
    assert result.tolist() == [0]


def test_a_users(weighted):
    node = ops.Custom(**FIELDS, operator="mine::Weighted", settings='{"weight": 3}')
    assert node.op == "mine::Weighted"
    x = numbers("float32", SHAPE)
    np.testing.assert_array_equal(node.evaluate([x], KIND), 3 * x)
    graph = verify(Graph(("x",), ("y",), (node,), {"x": KIND, "y": KIND}))
    np.testing.assert_array_equal(run_kernel(graph, node, {"x": x}), 3 * x)


def test_nobodys():
    node = ops.Custom(**FIELDS, operator="mine::Nothing")
    with pytest.raises(OperatorError, match="operator mine::Nothing: expected a registered one"):
        node.evaluate([numbers("float32", SHAPE)], KIND)
