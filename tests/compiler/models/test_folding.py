"""Constants behind layers, in their weights: against onnxruntime without any optimization."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.models.folding import fold_behind_layers

FLOAT = onnx.TensorProto.FLOAT
CHANNELS = 3
LAYERS = {  # of 2 inputs: the weights' shape, attributes, the input's shape, a constant's shape
    "Conv": ((3, 2, 3, 3), {}, (1, 2, 5, 4), (1, 3, 1, 1)),
    "Signal": ((3, 2, 3), {}, (1, 2, 6), (3, 1)),
    "ConvTranspose": ((2, 3, 2, 2), {"strides": [2, 2]}, (1, 2, 3, 3), (3, 1, 1)),
    "Gemm": ((2, 3), {}, (4, 2), (3,)),
    "Turned": ((3, 2), {"transB": 1}, (4, 2), (1, 3)),
    "MatMul": ((2, 3), {}, (2, 4, 2), (3,)),
}
OPERATORS = {"Signal": "Conv", "Turned": "Gemm"}


def network(kind, steps, bias=True, seed=0):
    """A layer and steps behind it: (function, whether its constant is one number, comes first)."""
    shape, attributes, size, spread = LAYERS[kind]
    rng = np.random.default_rng(seed)
    operator, values = OPERATORS.get(kind, kind), {"w": rng.normal(size=shape)}
    if bias and operator != "MatMul":
        values["b"] = rng.normal(size=CHANNELS)
    nodes = [helper.make_node(operator, ["x", *values], ["y0"], **attributes)]
    for number, (function, single, first) in enumerate(steps):
        value = rng.uniform(0.5, 2, () if single else spread) * rng.choice([-1, 1])
        values[f"c{number}"] = value
        operands = [f"y{number}", f"c{number}"]
        nodes.append(
            helper.make_node(function, operands[::-1] if first else operands, [f"y{number + 1}"])
        )
    weights = [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in values.items()]
    start = helper.make_tensor_value_info("x", FLOAT, size)
    end = helper.make_tensor_value_info(f"y{len(steps)}", FLOAT, None)
    graph = helper.make_graph(nodes, "folding", [start], [end], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, {"x": rng.normal(size=size).astype(np.float32)}


def folded(model):
    result = onnx.ModelProto()
    result.CopyFrom(model)
    fold_behind_layers(result)
    return result


def same(model, other, inputs):
    for name, wanted in ort_run(model, inputs, fuse=False).items():
        result = ort_run(other, inputs, fuse=False)[name]
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def operators(model):
    return [node.op_type for node in model.graph.node]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([kind for kind in LAYERS if kind != "MatMul"]),
    st.lists(
        st.tuples(st.sampled_from(["Add", "Sub", "Mul", "Div"]), st.booleans(), st.booleans())
    ),
    st.booleans(),
)
def test_steps_behind_a_layer_go_into_its_weights(kind, steps, bias):
    model, inputs = network(kind, steps, bias)
    result = folded(model)
    quotient = next((n for n, s in enumerate(steps) if s[0] == "Div" and s[2]), len(steps))
    assert operators(result)[1:] == [s[0] for s in steps[quotient:]]
    assert [
        w.name for w in result.graph.initializer if w.name not in result.graph.node[0].input
    ] == [f"c{n}" for n in range(quotient, len(steps))]
    same(model, result, inputs)


def test_a_product_of_matrices_takes_factors_alone():
    model, inputs = network(
        "MatMul", [("Mul", False, False), ("Div", True, False), ("Add", False, False)]
    )
    result = folded(model)
    assert operators(result) == ["MatMul", "Add"]
    same(model, result, inputs)


@pytest.mark.parametrize("reader", ["output", "node"])
def test_what_others_read_stays(reader):
    model, inputs = network("Conv", [("Mul", False, False)])
    if reader == "node":
        model.graph.node.append(helper.make_node("Neg", ["y0"], ["other"]))
    name = "y0" if reader == "output" else "other"
    model.graph.output.append(helper.make_tensor_value_info(name, FLOAT, None))
    result = folded(model)
    assert operators(result)[:2] == ["Conv", "Mul"]
    same(model, result, inputs)


@pytest.mark.parametrize("shape", [(1, 1, 3, 2), (1, 1, 1, 2), (2, 3, 1, 1), (1, 1, 3, 1, 1)])
def test_constants_of_other_axes_stay(shape):
    model, inputs = network("Conv", [("Mul", False, False)])
    other = numpy_helper.from_array(np.ones(shape, np.float32), "c0")
    model.graph.initializer[-1].CopyFrom(other)
    assert operators(folded(model)) == ["Conv", "Mul"]
    same(model, folded(model), inputs)


@pytest.mark.parametrize("attributes", [{"alpha": 0.5}, {"beta": 2.0}])
def test_a_product_with_a_factor_of_its_own_stays(attributes):
    model, inputs = network("Gemm", [("Mul", False, False)])
    model.graph.node[0].attribute.extend(
        helper.make_attribute(name, value) for name, value in attributes.items()
    )
    assert operators(folded(model)) == ["Gemm", "Mul"]
    same(model, folded(model), inputs)


def test_a_quotient_by_zero_stays():
    model, _ = network("Conv", [("Div", False, False)])
    zero = numpy_helper.from_array(np.zeros((1, 3, 1, 1), np.float32), "c0")
    model.graph.initializer[-1].CopyFrom(zero)
    assert operators(folded(model)) == ["Conv", "Div"]


def test_new_constants_take_no_name_that_is_there():
    model, inputs = network("Conv", [("Mul", False, False)])
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "y1.weight"))
    model.graph.node.append(helper.make_node("Neg", ["y1.weight"], ["other"]))
    model.graph.output.append(helper.make_tensor_value_info("other", FLOAT, None))
    same(model, folded(model), inputs)
