"""Weights of 4 bits in groups: files that onnxruntime reads, and integers for the accelerator."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import vdla
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.models.noise import layer_noise
from vdla.compiler.models.quantizer import prepared_model, quantize
from vdla.compiler.models.recipe import Recipe
from vdla.options.spelling import UsageError, group_of

LAYERS = {  # operator, weights, attributes, input
    "window": ("Conv", (12, 40, 3, 3), {"pads": [1] * 4}, (1, 40, 6, 5)),
    "pixel": ("Conv", (12, 40, 1, 1), {}, (1, 40, 4, 4)),
    "groups": ("Conv", (12, 32, 3, 3), {"group": 2}, (1, 64, 5, 5)),
    "few": ("Conv", (12, 5, 3, 3), {}, (1, 5, 5, 5)),
    "matmul": ("MatMul", (70, 12), {}, (1, 70)),
    "turned": ("Gemm", (12, 70), {"transB": 1}, (1, 70)),
}


def write(name, path, opset=21):
    """A layer whose inputs have weights of unequal ranges, by eights; some of its weights are 0."""
    op, shape, attributes, data = LAYERS[name]
    rng = np.random.default_rng(5)
    weight = rng.standard_normal(shape).astype(np.float32)
    axis = 0 if op == "MatMul" else 1
    spread = np.repeat(2.0 ** rng.integers(-3, 3, shape[axis]), 8)[: shape[axis]]
    weight *= spread.reshape([-1 if n == axis else 1 for n in range(len(shape))])
    weight[rng.random(shape) < 0.1] = 0
    constants = [numpy_helper.from_array(weight, "w")]
    if op != "MatMul":
        bias = rng.standard_normal(shape[0]).astype(np.float32)
        constants.append(numpy_helper.from_array(bias, "b"))
    names = ["x", *(each.name for each in constants)]
    node = helper.make_node(op, names, ["y"], name="layer", **attributes)
    graph = helper.make_graph(
        [node], "layer", [helper.make_tensor_value_info("x", TensorProto.FLOAT, data)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )  # fmt: skip
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return weight, {"x": rng.standard_normal((32, *data[1:])).astype(np.float32)}


def unfused(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options).run(None, inputs)[0]


def weights_in(graph):
    """The Dequantize of int8 weights in an imported graph."""
    (result,) = (n for n in graph.of(ops.Dequantize) if n.name == "w_DequantizeLinear")
    assert graph.constants[result.data].dtype == np.int8
    return result


@pytest.mark.parametrize("gptq", [False, True], ids=["nearest", "gptq"])
@pytest.mark.parametrize("name", LAYERS)
def test_a_device_of_int8_takes_them_with_the_same_numbers(name, gptq, tmp_path):
    weight, data = write(name, tmp_path / "f.onnx", opset=17)
    recipe = Recipe(weights="int4", group=16, gptq=gptq)
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data, recipe=recipe)
    model = onnx.load(str(tmp_path / "q.onnx"))
    onnx.checker.check_model(model)
    codes = next(t for t in model.graph.initializer if t.name == "w_quantized")
    assert codes.data_type == TensorProto.INT4
    assert (numpy_helper.to_array(codes).astype(int)[weight == 0] == 0).all()
    graph = import_onnx(tmp_path / "q.onnx")
    assert weights_in(graph)
    constants = {array.dtype for array in graph.constants.values()}
    assert constants <= {np.dtype(np.int8), np.dtype(np.int32)}  # and the bias
    module = vdla.compile(tmp_path / "q.onnx", config="tiny")
    assert "vdla" in {row["device"] for row in module.metadata["placement"]}
    inputs = {"x": data["x"][:1]}
    (got,) = vdla.run(module, inputs).outputs.values()
    want = unfused(tmp_path / "q.onnx", inputs)
    step = min(np.diff(np.unique(want)))
    assert np.abs(got - want).max() <= 1.01 * step


@pytest.mark.parametrize("name", ["window", "matmul", "turned"])
def test_groups_lose_less_than_a_scale_for_all_inputs(name, tmp_path):
    _, data = write(name, tmp_path / "f.onnx")
    ratios = {}
    for group in (0, 8):
        recipe = Recipe(weights="int4", group=group, gptq=True, bits16_below=np.inf)
        quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data, recipe=recipe)
        floats, model = prepared_model(tmp_path / "f.onnx"), onnx.load(str(tmp_path / "q.onnx"))
        samples = [{"x": each[None]} for each in data["x"]]
        (layer,) = layer_noise(floats, model, samples).layers
        ratios[group] = layer.own
    assert ratios[8] > ratios[0] + 2


def test_blocks_of_others_whose_scales_have_no_unit_stay_floats(tmp_path):
    """Scales of any size: their products with codes are no int8 of one scale."""
    write("matmul", tmp_path / "f.onnx")
    _, data = write("matmul", tmp_path / "f.onnx")
    recipe = Recipe(weights="int4", group=16)
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data, recipe=recipe)
    model = onnx.load(str(tmp_path / "q.onnx"))
    scale = next(t for t in model.graph.initializer if t.name == "w_scale")
    array = numpy_helper.to_array(scale) * np.linspace(1, 1.37, 5, dtype=np.float32)[:, None]
    scale.CopyFrom(numpy_helper.from_array(array, "w_scale"))
    onnx.save(model, tmp_path / "q.onnx")
    module = vdla.compile(tmp_path / "q.onnx", config="tiny")
    inputs = {"x": data["x"][:1]}
    (got,) = vdla.run(module, inputs).outputs.values()
    np.testing.assert_allclose(got, unfused(tmp_path / "q.onnx", inputs), atol=0.2)
    assert not any(
        isinstance(n, ops.Dequantize) and n.axis for n in import_onnx(tmp_path / "q.onnx").nodes
    )


def test_groups_by_their_option():
    assert group_of("int8") == ("int8", 0)
    assert group_of("int4:32") == ("int4", 32)
    for text in ("int4:x", "int4:4", "int8:32", "int4:"):
        with pytest.raises(UsageError, match="int4:N with groups of N >= 8 input channels, found"):
            group_of(text)


@pytest.mark.parametrize("name", ["window", "matmul"])
def test_scales_of_blocks_are_exact_multiples(name, tmp_path):
    """In float32, so that a device which multiplies by the unit has the file's weights."""
    _, data = write(name, tmp_path / "f.onnx")
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data, recipe=Recipe(weights="int4", group=8))
    model, graph = onnx.load(str(tmp_path / "q.onnx")), import_onnx(tmp_path / "q.onnx")
    (blocks,) = (numpy_helper.to_array(t) for t in model.graph.initializer if t.name == "w_scale")
    weight = weights_in(graph)
    column = [1] * blocks.ndim
    column[weight.axis] = -1
    factors = blocks.astype(np.float64) / np.array(weight.scale).reshape(column)
    assert (factors == np.rint(factors)).all()
    assert len(np.unique(factors)) > 5


@pytest.mark.parametrize("gptq", [False, True], ids=["nearest", "gptq"])
@pytest.mark.parametrize("name", ["window", "few", "turned"])
def test_biases_have_the_steps_of_their_products(name, gptq, tmp_path):
    """Else a device of integers would round them, and results near a half with them."""
    _, data = write(name, tmp_path / "f.onnx")
    recipe = Recipe(weights="int4", group=16, gptq=gptq)
    quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", data, recipe=recipe)
    model, graph = onnx.load(str(tmp_path / "q.onnx")), import_onnx(tmp_path / "q.onnx")
    held = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    wanted = held["x_scale"] * np.array(weights_in(graph).scale)
    np.testing.assert_allclose(held["b_quantized_scale"], wanted, rtol=1e-6)
    first = onnx.load(str(tmp_path / "f.onnx")).graph.initializer
    floats = {tensor.name: numpy_helper.to_array(tensor) for tensor in first}
    before = held["x_scale"] * np.abs(floats["w"]).reshape(12, -1).max(1) / 127
    moved = np.abs(held["b_quantized"] * wanted - floats["b"])
    assert (moved <= 0.51 * (before + wanted)).all()  # rounded twice
