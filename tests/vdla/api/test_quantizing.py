"""Quantizations by options: 16 bits and floats by ratio, and the search for the cheapest recipe."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla import api
from vdla.compiler.models.frontier import wide_tensors
from vdla.options import Quantize
from vdla.options.spelling import UsageError, chosen_by_ratio
from vdla.support.errors import UserError


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """Two layers of which the first has channels of very unequal ranges, and a pool."""
    rng = np.random.default_rng(2)
    spread = (10 ** rng.uniform(-2, 1, (16, 1, 1, 1))).astype(np.float32)
    constants = {
        "w0": rng.standard_normal((16, 16, 3, 3)).astype(np.float32) * spread,
        "w1": (rng.standard_normal((8, 16, 1, 1)) / spread[:, 0, 0, 0][None, :, None, None]),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w1"], ["c"], name="second"),
        helper.make_node("GlobalAveragePool", ["c"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["y"], name="flat"),
    ]
    graph = helper.make_graph(
        nodes, "floats",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 16, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8))],
        [numpy_helper.from_array(v.astype(np.float32), n) for n, v in constants.items()],
    )  # fmt: skip
    path = tmp_path_factory.mktemp("floats") / "floats.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(0).standard_normal((48, 16, 8, 8)).astype(np.float32)


def test_values_that_choose_by_name_or_by_ratio():
    assert chosen_by_ratio("--bits16", ("a", "b")) == (("a", "b"), None)
    assert chosen_by_ratio("--bits16", ("all",)) == ((), np.inf)
    assert chosen_by_ratio("--exclude", ("auto:27.5", "a")) == (("a",), 27.5)
    with pytest.raises(UsageError, match="--exclude: expected auto:DB, as auto:30, found 'auto:x'"):
        chosen_by_ratio("--exclude", ("auto:x",))


@pytest.mark.parametrize(("bits16", "count"), [(("b",), 1), (("all",), 5), (("auto:1",), 0)])
def test_tensors_of_sixteen_bits(bits16, count, floats, samples, tmp_path):
    how = Quantize({"x": samples}, bits16=bits16)
    api.quantize(floats, tmp_path / "q.onnx", how)
    assert wide_tensors(onnx.load(str(tmp_path / "q.onnx"))) == count


def test_nodes_that_stay_floats_by_their_ratio(floats, samples, tmp_path):
    """Of all that lose something, the network is floats."""
    api.quantize(floats, tmp_path / "q.onnx", Quantize({"x": samples}, exclude=("auto:500",)))
    made = onnx.load(str(tmp_path / "q.onnx")).graph.node
    assert not any(node.op_type == "QuantizeLinear" for node in made)


@pytest.mark.parametrize(("option", "said"), [
    ({"weights": "int5"}, "--weights: expected one of int8, int4, found int5"),
    ({"weights": "int4:16", "per_tensor": True},
     "--weights int4:16: expected scales of channels, found --per-tensor"),
    ({"bits16": ("nothing",)}, "expected a tensor of the model, found nothing"),
    ({"finetune": ("secont",)},
     "expected a layer with quantized weights, found secont; did you mean second?"),
    ({"finetune": ("all",), "auto": True}, "--finetune: expected no --auto, found both"),
    ({"steps": 7}, "--steps: expected --finetune, found none"),
])  # fmt: skip
def test_what_there_is_not(option, said, floats, samples, tmp_path):
    with pytest.raises(Exception, match=said):
        api.quantize(floats, tmp_path / "q.onnx", Quantize({"x": samples}, **option))
    assert not list(tmp_path.iterdir())


def test_the_search_writes_the_cheapest_that_is_good_enough(floats, samples, tmp_path):
    how = Quantize({"x": samples}, auto=True, snr=45, config="tiny")
    frontier = api.search_quantization(floats, tmp_path / "q.onnx", how)
    first, best = frontier.points[0], frontier.chosen
    assert (frontier.unit, frontier.config, frontier.wanted) == ("dB", "tiny", 45)
    assert first.score < 45 <= best.score
    assert first.cycles > 0
    noise = api.quantization_noise(floats, tmp_path / "q.onnx", Quantize({"x": samples}))
    assert noise.layers
    assert onnx.load(str(tmp_path / "q.onnx")) == best.model


def worst(outputs, labels):
    """The largest difference, negative."""
    return -np.abs(outputs["y"] - labels).max()


def test_the_search_by_a_users_score(floats, samples, tmp_path):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(floats))
    labels = np.concatenate([session.run(None, {"x": each[None]})[0] for each in samples])
    how = Quantize({"x": samples}, labels=labels, score=worst, auto=True, drop=0.4, config="tiny")
    frontier = api.search_quantization(floats, tmp_path / "q.onnx", how)
    assert frontier.unit == "worst"
    assert frontier.floats == pytest.approx(0, abs=1e-4)
    assert frontier.chosen.score >= frontier.wanted == pytest.approx(frontier.floats - 0.4)
    held = Quantize({"x": samples[1::2]}, labels=labels[1::2], score=worst)
    before, after = api.quantization_score(floats, tmp_path / "q.onnx", held)
    assert (before, after) == pytest.approx((frontier.floats, frontier.chosen.score))


def test_the_command_prints_what_it_has_tried(floats, samples, tmp_path, vdla):
    np.savez(tmp_path / "x.npz", x=samples)
    args = [str(floats), "-o", str(tmp_path / "q.onnx"), "--calibration", str(tmp_path / "x.npz")]
    result = vdla("quantize", *args, "--auto", "--snr", "45", "-c", "tiny", "--json")
    value = json.loads(result.out)
    points = value["frontier"]["points"]
    assert [point["chosen"] for point in points].count(True) == 1
    assert points[0]["recipe"] == "as given"
    assert value["layers"]


def test_layers_that_are_trained(floats, samples, tmp_path, vdla):
    """Those that lose most, by their ratio, or by name; the command says what that has gained."""
    np.savez(tmp_path / "x.npz", x=samples)
    target = tmp_path / "q.onnx"
    args = [str(floats), "-o", str(target), "--calibration", str(tmp_path / "x.npz")]
    args += ["--weights", "int4", "--steps", "40"]
    value = json.loads(vdla("quantize", *args, "--finetune", "all", "--json").out)["finetuned"]
    assert sorted(value["layers"]) == ["first", "second"]
    assert value["after"] > value["before"]
    noise = api.quantization_noise(floats, target, Quantize({"x": samples}, weights="int4"))
    assert noise.layers[-1].network > value["before"]
    said = vdla("quantize", *args, "--finetune", "second").err
    assert "fine-tuned 1 layer: on samples that were held back, the outputs have " in said
    said = vdla("quantize", *args, "--finetune", "auto:-90").err
    assert "fine-tuning: no layer loses as much, so none was trained" in said


@pytest.mark.parametrize(
    "more", [{"equalize": True}, {"bits16": ("all",)}, {"exclude": ("second",)}]
)
def test_training_behind_other_repairs(more, floats, samples, tmp_path):
    """What is trained runs, and is no worse than before."""
    how = Quantize({"x": samples}, weights="int4", **more)
    target = tmp_path / "q.onnx"
    tuning = api.quantize(floats, target, replace(how, finetune=("all",), steps=30))
    assert tuning.after >= tuning.before
    assert ("second" in tuning.layers) == ("exclude" not in more)
    assert onnx.load(str(target)) == tuning.model
    onnx.checker.check_model(tuning.model)


def test_what_has_no_gradient_is_refused(samples, tmp_path):
    """With its name, and nothing is written."""
    weight = np.random.default_rng(0).standard_normal((4, 16, 1, 1)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first"),
        helper.make_node("GlobalLpPool", ["a"], ["y"], name="norms"),
    ]
    graph = helper.make_graph(
        nodes, "floats",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 16, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 1, 1))],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    path, opsets = tmp_path / "norms.onnx", [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    with pytest.raises(UserError, match="grad: expected operators that have a gradient, found"):
        api.quantize(path, tmp_path / "q.onnx", Quantize({"x": samples}, finetune=("all",)))
    assert [each.name for each in tmp_path.iterdir()] == ["norms.onnx"]
