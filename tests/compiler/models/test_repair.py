"""Repairs before a quantization: networks compute what they did, and lose less."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.compiler.models.noise import layer_noise
from vdla.compiler.models.quantizer import prepared_model, quantize
from vdla.compiler.models.recipe import Recipe
from vdla.compiler.models.repair import correct_biases, equalize

CHANNELS = 24


class Unequal:
    """Blocks of MobileNetV2 (expand, depthwise, project) whose channels differ by up to 300 times,
    which is undone by the next layer: as training with batch normalization leaves them."""

    def __init__(self, seed=0, spread=1.2, activation="Relu"):
        self.rng, self.spread, self.activation = np.random.default_rng(seed), spread, activation
        self.nodes, self.constants = [], []
        last, incoming = "x", np.ones(3)
        for block in range(2):
            last, incoming = self.conv(f"expand{block}", last, incoming, CHANNELS)
            last, incoming = self.conv(f"depth{block}", last, incoming, CHANNELS, 3, True)
            last, incoming = self.conv(f"project{block}", last, incoming, 8, act=False, equal=True)
        self.nodes.append(helper.make_node("GlobalAveragePool", [last], ["p"], name="pool"))
        self.nodes.append(helper.make_node("Flatten", ["p"], ["f"], name="flat"))
        weight = self.rng.standard_normal((8, 5)).astype(np.float32)
        self.constants.append(numpy_helper.from_array(weight, "wfc"))
        self.nodes.append(helper.make_node("Gemm", ["f", "wfc"], ["y"], name="fc"))

    def conv(self, name, source, incoming, outputs, kernel=1, deep=False, act=True, equal=False):
        """A convolution that undoes its inputs' factors and has some of its own."""
        inputs = 1 if deep else len(incoming)
        weight = self.rng.standard_normal((outputs, inputs, kernel, kernel)) / np.sqrt(inputs)
        factors = np.ones(outputs) if equal else 10 ** self.rng.uniform(-1, 1, outputs)
        factors = factors**self.spread
        undo = incoming.reshape(-1, 1, 1, 1) if deep else incoming.reshape(1, -1, 1, 1)
        weight = weight / undo * factors.reshape(-1, 1, 1, 1)
        bias = self.rng.normal(0.2, 0.2, outputs) * factors
        for suffix, value in (("w", weight), ("b", bias)):
            self.constants.append(numpy_helper.from_array(value.astype(np.float32), name + suffix))
        self.nodes.append(helper.make_node(
            "Conv", [source, f"{name}w", f"{name}b"], [f"{name}.c"], name=name,
            pads=[kernel // 2] * 4, group=outputs if deep else 1,
        ))  # fmt: skip
        if not act:
            return f"{name}.c", factors
        self.nodes.append(helper.make_node(self.activation, [f"{name}.c"], [f"{name}.r"]))
        return f"{name}.r", factors

    def save(self, path):
        graph = helper.make_graph(
            self.nodes, "unequal",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 16, 16))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 5))], self.constants,
        )  # fmt: skip
        opsets = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
        return path


def outputs(model, samples):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.concatenate([session.run(None, {"x": x[None]})[0] for x in samples])


def decibels(exact, result):
    exact = exact.astype(np.float64)
    return 10 * np.log10(np.sum(exact**2) / np.sum((result - exact) ** 2))


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(9).standard_normal((24, 3, 16, 16)).astype(np.float32)


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu"])
def test_an_equalized_network_computes_the_same(tmp_path, samples, activation):
    path = Unequal(1, activation=activation).save(tmp_path / "m.onnx")
    before, after = onnx.load(path), onnx.load(path)
    assert equalize(after) == 5
    exact = outputs(before, samples)
    assert decibels(exact, outputs(after, samples)) > 100
    ranges = [
        np.abs(numpy_helper.to_array(t)).reshape(len(t.dims) and t.dims[0], -1).max(1)
        for t in after.graph.initializer if t.name in ("depth0w",)
    ]  # fmt: skip
    assert ranges[0].max() / ranges[0].min() < 30


def test_unequal_channels_gain_six_decibels(tmp_path, samples):
    """The issue's figure: equalization and corrected biases, at the network's output."""
    gains = []
    for seed in range(3):
        path = Unequal(seed).save(tmp_path / "m.onnx")
        exact = outputs(onnx.load(path), samples)
        ratios = []
        for recipe in (Recipe(), Recipe(equalize=True, correct_bias=True)):
            quantize(path, tmp_path / "q.onnx", {"x": samples}, recipe=recipe)
            ratios.append(decibels(exact, outputs(onnx.load(tmp_path / "q.onnx"), samples)))
        gains.append(ratios[1] - ratios[0])
    assert np.mean(gains) > 6, gains


def test_a_tensor_that_others_read_is_left_alone(tmp_path):
    """A skip connection, an activation that isn't homogeneous, a weight that two layers share."""
    path = Unequal(2).save(tmp_path / "m.onnx")
    for change in ("skip", "sigmoid", "shared"):
        model = onnx.load(path)
        nodes = {node.name: node for node in model.graph.node}
        if change == "skip":
            value = helper.make_tensor_value_info("expand0.r", TensorProto.FLOAT, None)
            model.graph.output.append(value)
        elif change == "sigmoid":
            next(n for n in model.graph.node if n.output[0] == "expand0.r").op_type = "Sigmoid"
        else:
            nodes["expand1"].input[1] = nodes["project0"].input[1]
        before = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        equalize(model)
        after = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
        kept = {"skip": "expand0w", "sigmoid": "expand0w", "shared": "project0w"}[change]
        if change == "shared":
            continue
        np.testing.assert_array_equal(before[kept], after[kept])


def test_mean_errors_go_into_the_biases(tmp_path, samples):
    path = Unequal(4).save(tmp_path / "m.onnx")
    model = onnx.load(path)
    before = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    errors = {"expand0": np.full(CHANNELS, 0.5), "fc": np.arange(5.0)}
    assert correct_biases(model, errors) == 2
    after = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    np.testing.assert_allclose(after["expand0b"], before["expand0b"] - 0.5, rtol=1e-6)
    np.testing.assert_array_equal(after["fc.bias"], -np.arange(5.0))
    onnx.checker.check_model(model)


def test_noise_of_an_equalized_network_is_beside_its_own_floats(tmp_path, samples):
    """Tensors between layers are scaled, so the floats they are compared with are, too."""
    path, recipe = Unequal(3).save(tmp_path / "m.onnx"), Recipe(equalize=True)
    quantize(path, tmp_path / "q.onnx", {"x": samples}, recipe=recipe)
    floats = prepared_model(path, recipe=recipe)
    ratios = layer_noise(floats, onnx.load(tmp_path / "q.onnx"), [{"x": x[None]} for x in samples])
    assert min(layer.own for layer in ratios.layers) > 20


def test_biases_beside_operators_of_integers(tmp_path, samples):
    """Sizes that a network computes are no tensors of floats."""
    model = onnx.load(str(Unequal(4).save(tmp_path / "m.onnx")))
    size = helper.make_node("Shape", ["x"], ["size"], name="size")
    shape = helper.make_node("Reshape", ["x", "size"], ["same"], name="same")
    for node in model.graph.node:
        node.input[:] = ["same" if name == "x" else name for name in node.input]
    nodes = [size, shape, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.output.append(helper.make_tensor_value_info("size", TensorProto.INT64, (4,)))
    onnx.save(model, tmp_path / "m.onnx")
    recipe = Recipe(correct_bias=True, gptq=True)
    quantize(tmp_path / "m.onnx", tmp_path / "q.onnx", {"x": samples}, recipe=recipe)
    assert onnx.load(str(tmp_path / "q.onnx")).graph.node
