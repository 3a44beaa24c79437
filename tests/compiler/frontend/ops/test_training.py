"""Steps of gradient descent: results of ONNX's reference, later steps too, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from vdla.compiler.build import compile_graph
from vdla.compiler.frontend import ModelError, import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

DOMAIN = "ai.onnx.preview.training"
MEMORIES = {"Momentum": 1, "Adagrad": 1, "Adam": 2}
SHAPES = ((3, 2), (4,))
NORM = {"norm_coefficient": 0.01}
MOMENTUM = {**NORM, "alpha": 0.9, "beta": 0.7}
CASES = [
    ("Momentum", {**MOMENTUM, "mode": "standard"}),
    ("Momentum", {**MOMENTUM, "mode": "nesterov", "norm_coefficient": 0.0}),
    ("Adagrad", {}),
    ("Adagrad", {**NORM, "decay_factor": 0.1, "epsilon": 1e-3}),
    ("Adam", {}),
    ("Adam", {**NORM, "norm_coefficient_post": 0.02, "alpha": 0.8, "beta": 0.99, "epsilon": 1e-3}),
]


def feeds(op, number, dtype="float32"):
    rng = np.random.default_rng(0)
    result = {"R": np.array(0.1, dtype), "T": np.array(number)}
    for group in ["x", "g", "v", "h"][: 2 + MEMORIES[op]]:
        for place, shape in enumerate(SHAPES):
            result[f"{group}{place}"] = np.abs(rng.standard_normal(shape)).astype(dtype)
    return result


def model(op, inputs, **attributes):
    names = [name for name in inputs if name[0] in "xvh"]
    node = helper.make_node(op, [*inputs], [f"{n}_new" for n in names], domain=DOMAIN, **attributes)
    ends = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in inputs.items()
    ]
    outputs = [
        helper.make_tensor_value_info(f"{e.name}_new", e.type.tensor_type.elem_type,
                                      inputs[e.name].shape)
        for e in ends if e.name in names
    ]  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    graph = helper.make_graph([node], "g", ends, outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize(("op", "attributes"), CASES)
@pytest.mark.parametrize("number", [0, 1, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_the_references(op, attributes, number, dtype):
    inputs = feeds(op, number, dtype)
    proto = model(op, inputs, **attributes)
    graph = import_model(proto)
    assert not any(isinstance(node, ops.External) for node in graph.nodes)
    found = evaluate(graph, inputs)
    want = ReferenceEvaluator(proto).run(None, inputs)
    for name, each in zip(graph.outputs, want, strict=True):
        assert found[name].dtype == dtype
        np.testing.assert_allclose(found[name], each, rtol=1e-5, atol=1e-6)


def test_a_step_runs_compiled():
    inputs = feeds("Adam", 7)
    graph = import_model(model("Adam", inputs))
    found = Executor(compile_graph(graph, load_config("tiny"))).run(inputs).outputs
    wanted = evaluate(graph, inputs)
    for name, each in found.items():
        np.testing.assert_allclose(each, wanted[name], rtol=1e-5, atol=1e-6)


def test_refusals():
    inputs = feeds("Momentum", 1)
    whole = {**MOMENTUM, "mode": "standard"}
    for attributes, words in (
        ({**whole, "mode": "heavy"}, "expected mode standard or nesterov, found heavy"),
        ({n: v for n, v in whole.items() if n != "beta"}, "beta"),
    ):
        with pytest.raises(ModelError, match=words):
            import_model(model("Momentum", inputs, **attributes))
    inputs["v1"] = inputs["v1"][:1]
    with pytest.raises(ModelError, match=r"expected one shape of all that belongs to x1, found"):
        import_model(model("Momentum", inputs, **whole))
    del inputs["v1"]
    with pytest.raises(ModelError, match="expected R, T and then 3 tensors for each parameter"):
        import_model(model("Momentum", inputs, **whole))
