"""Sums of products that just fit in 32 bits, and those that just don't."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.ir import GraphError
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.sums import Sums, check_products, within
from vdla.isa.config import load_config
from vdla.isa.numbers import INT32_MAX, INT32_MIN
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor

FULL = load_config("paper-full")
NO_LIMITS = (-(1 << 62), 1 << 62)
TOO_FAR = "expected sums of products and bias within 32 bits, -2147483648 to 2147483647, found "


def network(weight, bias, *, x_shape, scale=0.01, out=1.0, second=None, zero=0):
    """Q/DQ of x, a Conv (weights of 4 dimensions) or MatMul, Q/DQ; with ``second``, a shape, the
    product of two inputs."""
    constants, nodes = {}, []

    def pair(name, step, origin):
        constants[f"{name}.s"], constants[f"{name}.z"] = np.float32(step), np.int8(origin)
        ends = [f"{name}.s", f"{name}.z"]
        nodes.append(helper.make_node("QuantizeLinear", [name, *ends], [f"{name}.q"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}.q", *ends], [f"{name}.r"]))
        return f"{name}.r"

    def known(name, array, step):
        constants[name], constants[f"{name}.s"] = array, np.full(array.shape[:1], step, np.float32)
        inputs = [name, f"{name}.s"]
        nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{name}.r"], axis=0))
        return f"{name}.r"

    operands, shapes = [pair("x", scale, zero)], {"x": x_shape}
    if second:
        shapes["b"] = second
        operands.append(pair("b", scale, 0))
    else:
        operands.append(known("w", weight, scale))
    if bias is not None:
        operands.append(known("bias", bias, np.float32(scale) * np.float32(scale)))
    conv = weight is not None and weight.ndim == 4
    kind, more = ("Conv", {}) if conv else ("MatMul", {}) if second else ("Gemm", {"transB": 1})
    nodes.append(helper.make_node(kind, operands, ["p"], name="layer", **more))
    result = pair("p", out, 0)
    outputs = len(weight) if weight is not None else 1
    shape = (1, outputs, *x_shape[2:]) if conv else (1, outputs) if not second else (1, 1, 1)
    graph = helper.make_graph(
        nodes,
        "sums",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [helper.make_tensor_value_info(result, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def layer(model):
    """The operator that a layer becomes, and why it stayed float."""
    graph = optimize(import_model(model))
    return graph.node("layer").op, graph.reasons.get("layer", "")


def all_devices_agree(model, inputs):
    """Every device gives onnxruntime's result, whose floats round."""
    (want,) = ort_run(model, inputs, fuse=False).values()
    for device in ("cpu", "sim", "gpu"):
        options = Options() if device == "sim" else Options(device=device)
        module = compile_graph(import_model(model), FULL, options)
        result = Executor(module, make_device(module, device, FULL)).run(inputs).outputs
        (got,) = result.values()
        np.testing.assert_allclose(got, want, rtol=1e-3, err_msg=device)
    return want


WEIGHT = np.full((1, 16, 1, 1), 127, np.int8)
MOST, LEAST = 16 * 127 * 127, -16 * 127 * 128  # the sums of its products


@pytest.mark.parametrize("value", [INT32_MAX - MOST, INT32_MIN - LEAST])
@pytest.mark.parametrize("beyond", [0, 1])
def test_a_bias_at_the_edge(value, beyond):
    """Of results so fine that a step of a sum is seen, the last that fits and the first not to."""
    bias = np.array([value + beyond * np.sign(value)], np.int32)
    model = network(WEIGHT, bias, x_shape=(1, 16, 2, 3), out=1e-2)
    sums, steps = Sums.of(WEIGHT, 0), np.array([1.0])
    assert (sums.least[0], sums.most[0]) == (LEAST, MOST)
    if beyond:
        with pytest.raises(GraphError, match=TOO_FAR):
            sums.fitting_bias(bias.astype(float), steps, NO_LIMITS)
    else:
        assert sums.fitting_bias(bias.astype(float), steps, NO_LIMITS) == bias
    assert layer(model)[0] == "QConv2d"  # a result of 8 bits is at its limit all the same
    all_devices_agree(model, {"x": np.full((1, 16, 2, 3), np.sign(value) * 1.27, np.float32)})


def test_a_bias_that_turns_sums_around_stays_a_float():
    """A result in whose range the sums lie: 2**31 wraps to the other sign."""
    weight = np.full((1, 400, 1, 1), 127, np.int8)
    bias = np.array([INT32_MAX], np.int32)
    model = network(weight, bias, x_shape=(1, 400, 2, 3), out=2e3)
    kind, reason = layer(model)
    assert (kind, reason) == ("Conv2d", f"{TOO_FAR}2140981247 to 2153935247 in output channel 0")
    want = all_devices_agree(model, {"x": np.full((1, 400, 2, 3), 1.27, np.float32)})
    assert (want > 0).all()


def test_a_channel_of_nearly_no_weights_keeps_its_integers():
    """Quantizers write a bias at the end of int32 there; room for the products moves nothing."""
    weight = np.array([[127] * 16, [1] * 16], np.int8).reshape(2, 16, 1, 1)
    model = network(weight, np.array([5, INT32_MAX], np.int32), x_shape=(1, 16, 2, 3), out=2e3)
    assert layer(model)[0] == "QConv2d"
    want = all_devices_agree(model, {"x": np.full((1, 16, 2, 3), 1.27, np.float32)})
    assert (want[:, 1] > 2e5).all()


@pytest.mark.parametrize(
    ("count", "kind"), [(132_104, "QDense"), (132_128, "QDense"), (132_129, "Dense")]
)
def test_long_products(count, kind):
    """132,104 products of 127 and -128 fit; 24 more do with a bias that rounding hides."""
    model = network(np.full((1, count), 127, np.int8), None, x_shape=(1, count), out=1e4)
    assert layer(model)[0] == kind
    x = np.full((1, count), -1.28, np.float32)
    want = all_devices_agree(model, {"x": x})
    assert (want < -2e5).all()


@pytest.mark.parametrize("count", [131_071, 131_073])
def test_long_products_of_two_inputs(count):
    """131,071 products of -128 and -128 fit; more stay floats, with that reason."""
    model = network(None, None, x_shape=(1, 1, count), second=(1, count, 1), out=1e4)
    inputs = {"x": np.full((1, 1, count), -1.28), "b": np.full((1, count, 1), -1.28)}
    want = all_devices_agree(model, {n: a.astype(np.float32) for n, a in inputs.items()})
    assert (want > 2e5).all()


def test_products_of_two_at_the_edge():
    check_products(131_071, 0, 0)
    check_products(33_025, 127, 127)
    with pytest.raises(GraphError) as error:
        check_products(131_072, 0, 0)
    assert str(error.value) == (
        "expected sums of products within 32 bits, -2147483648 to 2147483647, found up to "
        "2147483648 of 131072 products"
    )
    with pytest.raises(GraphError, match="found up to 2147515650 of 33026 products"):
        check_products(33_026, 127, -128)


def test_the_oracle_has_no_sums_that_devices_have_not():
    """An interpreter with more bits than devices says so."""
    assert within(np.array([INT32_MIN, INT32_MAX])).size == 2
    with pytest.raises(GraphError) as error:
        within(np.array([0, INT32_MAX + 1]))
    assert str(error.value) == (
        "expected sums within 32 bits, -2147483648 to 2147483647, found 0 to 2147483648"
    )


def test_zero_points_and_signs_count():
    weight = np.array([[3, -5], [0, 0]], np.int8)
    sums = Sums.of(weight, 10)
    assert sums.least.tolist() == [3 * -138 - 5 * 117, 0]
    assert sums.most.tolist() == [3 * 117 - 5 * -138, 0]
