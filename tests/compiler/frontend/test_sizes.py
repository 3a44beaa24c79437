"""Sizes that no machine holds are refused by name, before anything of them is made."""

from __future__ import annotations

import tracemalloc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.frontend.onnx import import_model

HUGE = 1 << 20


def model(kind, shape, rank, *, dtype=TensorProto.FLOAT, constants=(), **attributes):
    """One node on ``x`` and constants, None where it has no operand."""
    named = {f"c{n}": c for n, c in enumerate(constants) if c is not None}
    operands = ["x", *(f"c{n}" if c is not None else "" for n, c in enumerate(constants))]
    graph = helper.make_graph(
        [helper.make_node(kind, operands, ["y"], name="n", **attributes)],
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [f"d{n}" for n in range(rank)])],
        [numpy_helper.from_array(np.asarray(c), name) for name, c in named.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def longs(*values):
    return np.array(values, np.int64)


ONE = np.ones((1, 1, 1, 1), np.float32)
EXPECTED = "expected a tensor of at most 2,147,483,647 elements, found "


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (model("Relu", [1 << 40], 1), "input x: {}float32[1099511627776], 4,398,046,511,104 bytes"),
        (model("Relu", [1 << 62, 4], 2), "input x: {}float32[4611686018427387904, 4], "),
        (model("Relu", [1 << 20, 1 << 14], 2), "input x: {}float32[1048576, 16384], 68,719,"),
        (model("Expand", [1], 1, constants=[longs(1 << 40)]), "node n (Expand): result y: {}"),
        (model("Tile", [4], 1, constants=[longs(1 << 45)]), "node n (Tile): result y: {}"),
        (model("Resize", [1, 1, 4, 4], 4, constants=[None, np.array([1, 1, 1e9, 1e9], "f4")]),
         "node n (Resize): result y: {}float32[1, 1, 4000000000, 4000000000]"),
        (model("OneHot", [4], 2, dtype=TensorProto.INT64,
               constants=[longs(1 << 50), np.array([0, 1], "f4")]),
         "node n (OneHot): result y: {}"),
        (model("Conv", [1, 1, HUGE, HUGE], 4, constants=[ONE]), "input x: {}"),
        (model("Conv", [1, 1, 4, 4], 4, constants=[ONE], pads=[HUGE] * 4),
         "node n (Conv): result y: {}float32[1, 1, 2097156, 2097156], 17,592,253,153,344 bytes"),
        (model("Pad", [4], 1, constants=[longs(0, 1 << 45)]), "node n (Pad): result y: {}"),
    ],
)  # fmt: skip
def test_sizes_beyond_memory(made, message):
    tracemalloc.start()
    try:
        with pytest.raises(ModelError) as refused:
            import_model(made)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert str(refused.value).startswith("model: " + message.format(EXPECTED))


def test_a_constant_that_would_be_huge():
    nodes = [
        helper.make_node("Expand", ["c", "s"], ["t"], name="large"),
        helper.make_node("Add", ["t", "x"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [
            numpy_helper.from_array(np.ones(1, np.float32), "c"),
            numpy_helper.from_array(longs(1 << 33), "s"),
        ],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ModelError, match=r"node large \(Expand\): result t: expected a tensor of"):
        import_model(made)


def test_an_element_type_that_onnx_lacks():
    made = model("Relu", [4], 1, dtype=99)
    with pytest.raises(ModelError, match=r"input x: expected elements of float32, .*found type 99"):
        import_model(made)


def test_an_attribute_of_a_function_outside_of_one():
    made = model("LeakyRelu", [4], 1)
    made.graph.node[0].attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    with pytest.raises(ModelError) as refused:
        import_model(made)
    assert str(refused.value) == (
        "model: node n (LeakyRelu): expected attributes of a function in a function alone, "
        "found alpha = @slope"
    )
