"""Noise of a quantization: ratios against ones worked out by hand, the command, and its page."""

from __future__ import annotations

import json
from math import inf, log10

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import vdla as package
from vdla.analysis.report import noise_page
from vdla.compiler.models.noise import LayerNoise, Noise, layer_noise
from vdla.compiler.models.quantizer import quantize


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Floats of two dense layers, of which the second has one weight far above the others; their
    QDQ form; samples."""
    rng = np.random.default_rng(2)
    first = rng.standard_normal((16, 16)).astype(np.float32)
    second = rng.standard_normal((16, 8)).astype(np.float32)
    second[0, 0] = 400
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("MatMul", ["b", "w1"], ["y"], name="second"),
    ]
    graph = helper.make_graph(
        nodes, "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8))],
        [numpy_helper.from_array(first, "w0"), numpy_helper.from_array(second, "w1")],
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("noise")
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "floats.onnx")
    samples = rng.standard_normal((32, 16)).astype(np.float32)
    quantize(folder / "floats.onnx", folder / "q.onnx", {"x": samples})
    return folder / "floats.onnx", folder / "q.onnx", samples, (first, second)


def rounded(array, scale, zero=0):
    """Integers of a scale and a zero point, as floats."""
    return (np.clip(np.rint(array / scale) + zero, -128, 127) - zero) * scale


def decibels(exact, result):
    return 10 * log10(np.sum(exact**2.0) / np.sum((result - exact) ** 2.0))


def test_ratios_are_those_worked_out_by_hand(models):
    floats, quantized, samples, (first, second) = models
    graph = onnx.load(quantized).graph
    constants = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in graph.initializer}

    def steps(name):
        return constants[f"{name}_scale"], constants[f"{name}_zero_point"]

    ours = layer_noise(
        onnx.load(floats),
        onnx.load(quantized),
        [{"x": samples[i : i + 4]} for i in range(0, 32, 4)],
    )
    rows = {layer.name: layer for layer in ours.layers}
    b = np.maximum(samples @ first, 0)
    scales = np.abs(second).max(0) / 127
    weights = rounded(second, scales)
    assert rows["second"].weights == pytest.approx(decibels(second, weights), abs=0.5)
    own = rounded(rounded(b, *steps("b")) @ weights, *steps("y"))
    assert rows["second"].own == pytest.approx(decibels(b @ second, own), abs=0.3)
    seen = np.maximum(rounded(samples, *steps("x")) @ rounded(first, np.abs(first).max(0) / 127), 0)
    network = rounded(rounded(seen, *steps("b")) @ weights, *steps("y"))
    assert rows["second"].network == pytest.approx(decibels(b @ second, network), abs=0.3)
    assert rows["second"].network < rows["second"].own
    assert ours.samples == 8


def test_exact_layers_have_no_number_in_json():
    layer = LayerNoise("pool", "MaxPool", None, inf, 31.5)
    assert layer.to_json() == {
        "name": "pool", "op": "MaxPool", "weights": None, "own": None, "network": 31.5
    }  # fmt: skip


def test_the_command_prints_what_loses_most_and_writes_a_page(vdla, models, tmp_path):
    floats, _, samples, _ = models
    np.savez(tmp_path / "s.npz", x=samples)
    target, page = tmp_path / "q.onnx", tmp_path / "noise.html"
    asked = ("quantize", floats, "-o", target, "--calibration", tmp_path / "s.npz")
    done = vdla(*asked, "--report", page)
    assert done.code == 0
    assert "second" in done.out
    assert "alone" in done.out
    text = page.read_text()
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    assert data["calibration"] == "s.npz"
    names = [layer["name"] for layer in data["layers"]]
    assert names[-1] == "second"
    printed = vdla(*asked, "--json").json
    assert printed["layers"] == data["layers"]
    rows = package.quantization_noise(floats, target).layers
    assert [layer.name for layer in rows] == names


def test_a_constant_that_is_one_number_has_a_ratio(tmp_path):
    nodes = [helper.make_node("Mul", ["x", "half"], ["y"], name="halved")]
    graph = helper.make_graph(
        nodes, "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 16))],
        [helper.make_tensor("half", TensorProto.FLOAT, (), [0.37])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "floats.onnx")
    samples = np.random.default_rng(1).standard_normal((8, 4, 16)).astype(np.float32)
    quantize(tmp_path / "floats.onnx", tmp_path / "q.onnx", {"x": samples.reshape(32, 16)})
    inputs = [{"x": each} for each in samples]
    (layer,) = layer_noise(model, onnx.load(tmp_path / "q.onnx"), inputs).layers
    assert layer.weights > 40


def test_a_page_is_the_same_for_the_same_input():
    noise = Noise([LayerNoise("a<b>", "Conv", 40.0, 30.0, 20.0)], 4)
    first, second = (noise_page("net", noise, "images") for _ in range(2))
    assert first == second
    assert "a<b>" not in first.split('<script type="module">')[0].replace("\\u003c", "")


def test_a_report_over_its_model_is_refused(vdla, models):
    floats, *_ = models
    done = vdla("quantize", floats, "-o", floats.parent / "r.onnx", "--report", floats)
    assert done.code == 2
    assert "floats.onnx" in done.err
    assert not (floats.parent / "r.onnx").exists()


# Accuracy ----------------------------------------------------------------------------------------


def test_accuracy_is_the_share_of_best_classes(vdla, models, tmp_path):
    floats, _, samples, (first, second) = models
    scores = np.maximum(samples @ first, 0) @ second
    ranks = (-scores).argsort(1)
    labels = ranks[:, 0].copy()
    labels[:8] = ranks[:8, 3]  # among the best five
    labels[8:12] = ranks[8:12, 6]
    np.savez(tmp_path / "s.npz", x=samples)
    (tmp_path / "labels.txt").write_text("\n".join(map(str, labels)))
    done = vdla(
        "quantize", floats, "-o", tmp_path / "q.onnx", "--calibration", tmp_path / "s.npz",
        "--labels", tmp_path / "labels.txt", "--json",
    )  # fmt: skip
    both = done.json["accuracy"]
    assert both["floats"] == {"top1": 20 / 32, "top5": 28 / 32, "samples": 32}
    assert both["quantized"]["samples"] == 32
    assert "accuracy of 32 samples: floats 62.50 % (top-5 87.50 %), quantized " in done.err


def test_labels_that_do_not_fit_are_refused_before_anything_is_written(vdla, models, tmp_path):
    floats, _, samples, _ = models
    np.savez(tmp_path / "s.npz", x=samples)
    target, labels = tmp_path / "q.onnx", tmp_path / "labels.npy"
    asked = ("quantize", floats, "-o", target, "--labels", labels)
    calibrated = (*asked, "--calibration", tmp_path / "s.npz")
    assert "--labels: expected --calibration, found none" in vdla(*asked).err
    assert f"{labels}: expected labels: a .npy of integers" in vdla(*calibrated).err
    np.save(labels, np.zeros(31, np.int64))
    assert f"{labels}: expected a label for each of 32 samples, found 31" in vdla(*calibrated).err
    np.save(labels, np.zeros(32))
    assert "found float64 of shape [32]" in vdla(*calibrated).err
    assert not target.exists()
    np.save(labels, np.full(32, 8))
    assert "dense: expected labels below 8, found 8" in vdla(*calibrated).err
