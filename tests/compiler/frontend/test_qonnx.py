"""QONNX's quantizers against their definition: integers of a byte where that is enough."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate

F = np.float32
X = np.random.default_rng(2).normal(0, 3, (2, 4, 5, 3)).astype(F)
X.flat[:6] = 0.125, -0.125, 0.375, 900, -900, 0  # ties of scale 0.25, and far beyond
SCALES = {"one": F(0.25), "channels": F([0.25, 0.5, 1, 2]).reshape(1, 4, 1, 1)}


def model(scale, zero, bits, *, known=False, domain="qonnx.custom_op.general", **attributes):
    """A quantizer of the input, or of a constant that is added to it."""
    constants = {"s": scale, "z": zero, "b": F(bits), **({"w": X} if known else {})}
    data = "w" if known else "x"
    inputs = [data, "s", "z", "b"]
    nodes = [helper.make_node("Quant", inputs, ["q"], "it", domain=domain, **attributes)]
    if known:
        nodes.append(helper.make_node("Add", ["x", "q"], ["y"]))
    ends = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, X.shape)
        for n in ("x", nodes[-1].output[0])
    ]
    weights = [numpy_helper.from_array(np.asarray(a, F), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def defined(x, scale, zero, bits, signed=1, narrow=0, rounding_mode="ROUND"):
    """What the package qonnx computes, in its order."""
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    rounding = {"ROUND": np.rint, "CEIL": np.ceil, "FLOOR": np.floor}[rounding_mode]
    integers = rounding(np.clip(x / scale + F(zero), F(low), F(high)))
    return ((integers - F(zero)) * scale).astype(F)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(("bits", "options", "integers"), [
    (8, {}, True), (8, {"signed": 0}, True), (4, {}, True), (6, {"signed": 0}, True),
    (8, {"narrow": 1}, True), (4, {"signed": 0, "narrow": 1}, True), (2, {}, True),
    (16, {}, False), (12, {"signed": 0}, False), (8, {"rounding_mode": "FLOOR"}, False),
    (5, {"rounding_mode": "CEIL"}, False),
])  # fmt: skip
def test_results_are_the_definitions(scale, known, bits, options, integers):
    scale, given = SCALES[scale], {"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **options}
    zero = 2 if not given["signed"] and given["narrow"] else 0  # even: ties as ONNX has them
    proto = model(scale, zero, bits, known=known, **given)
    graph = import_model(proto)
    want = defined(X, scale, zero, bits, **given) + (X if known else 0)
    for each in (graph, optimize(graph)):
        np.testing.assert_array_equal(evaluate(each, {"x": X})[each.outputs[0]], want)
    found = any(isinstance(node, ops.Dequantize) for node in graph.nodes)
    assert found == integers


@pytest.mark.parametrize("domain", ["onnx.brevitas", "finn.custom_op.general"])
def test_older_domains(domain):
    graph = import_model(model(F(0.25), 0, 8, domain=domain, signed=1, narrow=0))
    got = evaluate(graph, {"x": X})[graph.outputs[0]]
    np.testing.assert_array_equal(got, defined(X, F(0.25), 0, 8))


@pytest.mark.parametrize(("bits", "rounding"), [(1, "ROUND"), (8, "HALF_UP")])
def test_forms_that_have_no_nodes_are_refused_in_a_line(bits, rounding):
    with pytest.raises(ModelError) as error:
        import_model(model(F(0.25), 0, bits, signed=1, narrow=0, rounding_mode=rounding), "m")
    assert str(error.value).startswith("m: node it (Quant): expected an operator that vdla or ")
    assert "\n" not in str(error.value)
