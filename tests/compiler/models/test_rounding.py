"""GPTQ: weights rounded by their inputs lose less of a layer's output than the nearest do."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.models.layers import layers_of
from vdla.compiler.models.noise import layer_noise
from vdla.compiler.models.quantizer import prepared_model, quantize
from vdla.compiler.models.recipe import Recipe
from vdla.compiler.models.rounding import Moments, rounded

LIMITS = {"int8": (-127, 127), "int4": (-8, 7)}


def mixed(rng, inputs, places):
    """Inputs of which some are nearly others: where errors can make up for each other."""
    base = rng.standard_normal((inputs // 4, places))
    return (
        rng.standard_normal((inputs, inputs // 4)) @ base
        + 0.1 * rng.standard_normal((inputs, places))
    )[None]


def nearest(rows, scales, limits):
    return np.clip(np.rint(rows / scales[..., None]), *limits)


@pytest.mark.parametrize("bits", LIMITS)
def test_the_layers_output_loses_less(bits):
    rng, limits = np.random.default_rng(0), LIMITS[bits]
    rows, columns = rng.standard_normal((1, 12, 64)), mixed(rng, 64, 900)
    moments = Moments(np.zeros(()))
    moments.add(columns[..., :500])
    moments.add(columns[..., 500:])
    scales = np.abs(rows).max(2) / limits[1]
    codes, chosen = rounded(rows, scales, moments, limits, rescaled=bits == "int4")
    assert (codes == np.rint(codes)).all()
    assert codes.min() >= limits[0]
    assert codes.max() <= limits[1]

    def error(codes, scales):
        return (((rows - codes * scales[..., None]) @ columns) ** 2).sum()

    assert error(codes, chosen) < 0.25 * error(nearest(rows, scales, limits), scales)
    assert (chosen == scales).all() == (bits == "int8")


def test_few_places_round_to_the_nearest():
    """Two samples say nothing of 64 inputs."""
    rng = np.random.default_rng(1)
    rows, moments = rng.standard_normal((1, 5, 64)), Moments(np.zeros(()))
    moments.add(mixed(rng, 64, 2))
    scales = np.abs(rows).max(2) / 127
    codes, _ = rounded(rows, scales, moments, LIMITS["int8"], rescaled=False)
    assert (codes == nearest(rows, scales, LIMITS["int8"])).mean() > 0.9


def test_inputs_that_are_never_there():
    rows, moments = np.ones((2, 3, 8)), Moments(np.zeros(()))
    moments.add(np.zeros((2, 8, 50)))
    scales = np.full((2, 3), 1 / 127)
    codes, _ = rounded(rows, scales, moments, LIMITS["int8"], rescaled=False)
    assert (codes == 127).all()


NETWORK = {  # operator, weights, attributes, shape of the input
    "plain": ("Conv", (6, 5, 3, 3), {"pads": [1, 0, 1, 2], "strides": [2, 1]}, (1, 5, 9, 8)),
    "dilated": ("Conv", (6, 5, 3, 3), {"dilations": [2, 1], "pads": [2, 1] * 2}, (1, 5, 9, 8)),
    "upper": ("Conv", (6, 5, 2, 2), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, (1, 5, 9, 8)),
    "lower": ("Conv", (6, 5, 2, 2), {"strides": [2, 2], "auto_pad": "SAME_LOWER"}, (1, 5, 9, 8)),
    "valid": ("Conv", (6, 5, 3, 3), {"auto_pad": "VALID"}, (1, 5, 9, 8)),
    "groups": ("Conv", (6, 2, 3, 3), {"group": 2}, (1, 4, 9, 8)),
    "signal": ("Conv", (6, 5, 3), {"pads": [1, 1]}, (1, 5, 19)),
    "volume": ("Conv", (3, 2, 2, 2, 2), {}, (1, 2, 4, 5, 6)),
    "gemm": ("Gemm", (40, 7), {}, (3, 40)),
    "turned": ("Gemm", (7, 40), {"transB": 1}, (3, 40)),
    "turned data": ("Gemm", (40, 7), {"transA": 1}, (40, 3)),
    "matmul": ("MatMul", (40, 7), {}, (2, 3, 40)),
}


def floats_of(name, path):
    op, weight, attributes, shape = NETWORK[name]
    rng = np.random.default_rng(3)
    constants = [numpy_helper.from_array(rng.standard_normal(weight).astype(np.float32), "w")]
    names = ["x", "w"]
    if op != "MatMul":
        outputs = weight[0] if op == "Conv" or attributes.get("transB") else weight[1]
        constants.append(
            numpy_helper.from_array(rng.standard_normal(outputs).astype(np.float32), "b")
        )
        names.append("b")
    node = helper.make_node(op, names, ["y"], name="layer", **attributes)
    graph = helper.make_graph(
        [node], "layer", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants,
    )  # fmt: skip
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    return {"x": rng.standard_normal((24 * shape[0], *shape[1:])).astype(np.float32)}


@pytest.mark.parametrize("name", NETWORK)
def test_columns_are_what_rows_meet(name, tmp_path):
    """A layer's rows times its columns are its output without the bias."""
    data = floats_of(name, tmp_path / "f.onnx")
    shape = NETWORK[name][3]
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data)
    floats = prepared_model(tmp_path / "f.onnx")
    (layer,) = layers_of(onnx.load(str(tmp_path / "q.onnx")), floats)
    x = data["x"][: shape[0]]
    (want,) = onnx.reference.ReferenceEvaluator(onnx.load(str(tmp_path / "f.onnx"))).run(
        None, {"x": x}
    )
    bias = next((numpy_helper.to_array(t) for t in floats.graph.initializer if t.name == "b"), None)
    got = layer.rows @ layer.columns(x)
    got = got.reshape(-1, got.shape[-1])
    axis = 1 if NETWORK[name][0] == "Conv" else want.ndim - 1
    flat = np.moveaxis(want, axis, 0).reshape(want.shape[axis], -1)
    np.testing.assert_allclose(got, flat - (0 if bias is None else bias[:, None]), atol=2e-4)


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("name", ["plain", "groups", "turned", "matmul"])
def test_a_file_keeps_its_form(name, weights, tmp_path):
    """Only numbers of weights, scales and biases differ; of 4 bits the ratio is better for it."""
    data, ratios = floats_of(name, tmp_path / "f.onnx"), {}
    for gptq in (False, True):
        recipe = Recipe(gptq=gptq, weights=weights, bits16_below=np.inf)
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data, recipe=recipe)
        model = onnx.load(str(tmp_path / "q.onnx"))
        onnx.checker.check_model(model)
        floats, first = prepared_model(tmp_path / "f.onnx"), NETWORK[name][3][0]
        samples = [{"x": data["x"][i : i + first]} for i in range(0, len(data["x"]), first)]
        (layer,) = layer_noise(floats, model, samples).layers
        ratios[gptq] = layer.own
    assert ratios[True] > ratios[False] + (0.3 if weights == "int4" else -0.5)


@pytest.mark.parametrize("weights", ["int8", "int4"])
@pytest.mark.parametrize("name", ["plain", "groups", "turned", "matmul"])
def test_one_scale_for_a_whole_weight(name, weights, tmp_path):
    """Per tensor, the scale is the quantizer's, and there is one of it."""
    data, scales = floats_of(name, tmp_path / "f.onnx"), []
    for gptq in (False, True):
        recipe = Recipe(gptq=gptq, weights=weights, per_tensor=True)
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data, recipe=recipe)
        model = onnx.load(str(tmp_path / "q.onnx"))
        scale = next(t for t in model.graph.initializer if t.name == "w_scale")
        scales.append(numpy_helper.to_array(scale))
    assert scales[0].size == 1
    assert scales[0] == scales[1]
