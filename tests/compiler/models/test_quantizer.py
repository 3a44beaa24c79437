"""Recipes of ``vdla quantize``: methods of ranges, scales, exclusions, bounded memory."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla import api
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.models.quantizer import _Reader, quantize
from vdla.compiler.models.recipe import METHODS, Recipe
from vdla.options import Quantize
from vdla.options.spelling import UsageError


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    """A model of two convolutions of floats, and samples with a few large values."""
    rng = np.random.default_rng(1)
    weights = {
        name: rng.standard_normal((4, channels, 3, 3)).astype(np.float32)
        for name, channels in (("w0", 3), ("w1", 4))
    }
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "w1"], ["y"], name="second", pads=[1] * 4),
    ]
    graph = helper.make_graph(
        nodes, "floats",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 8, 8))],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    path = tmp_path_factory.mktemp("floats") / "floats.onnx"
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    samples = rng.standard_normal((40, 3, 8, 8)).astype(np.float32)
    samples[7, 0, 0, 0] = 60
    return path, {"x": samples}


def constants(path):
    """A model's constants, by name."""
    graph = onnx.load(path).graph
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}


@pytest.fixture(scope="module")
def scales(floats, tmp_path_factory):
    """The scale of x by each method."""
    source, samples = floats
    folder = tmp_path_factory.mktemp("methods")
    result = {}
    for method in METHODS:
        recipe = Recipe(method, percentile=99.9)
        quantize(source, folder / "q.onnx", samples, recipe=recipe)
        result[method] = float(constants(folder / "q.onnx")["x_scale"])
    return result


def test_methods_that_leave_out_rare_values_have_finer_steps(scales):
    assert scales["minmax"] > 0.2  # 60 and some, in 255 steps
    assert scales["percentile"] < 0.3 * scales["minmax"]
    assert scales["entropy"] < scales["minmax"]
    assert len(set(scales.values())) == len(METHODS)


def test_ranges_zero_points_and_channels_are_as_asked(floats, tmp_path):
    source, samples = floats
    target = tmp_path / "q.onnx"
    recipe = Recipe(per_tensor=True, symmetric=True, ranges={"b": (0.0, 25.5)})
    quantize(source, target, samples, recipe=recipe)
    values = constants(target)
    assert values["w0_scale"].shape == ()
    assert values["x_zero_point"] == 0
    assert values["b_scale"] == pytest.approx(25.5 / 127, rel=0.01)


def test_a_node_that_is_excluded_stays_float(floats, tmp_path):
    source, samples = floats
    target = tmp_path / "q.onnx"
    quantize(source, target, samples, recipe=Recipe(exclude=["second"]))
    second = next(node for node in onnx.load(target).graph.node if node.name == "second")
    assert second.input[1] == "w1"


def test_progress_is_told_sample_by_sample(floats, tmp_path):
    source, samples = floats
    steps = []
    quantize(source, tmp_path / "q.onnx", samples, progress=lambda *step: steps.append(step))
    assert steps == [("calibration", number + 1, 40) for number in range(40)]


def test_the_reader_gives_the_samples_of_a_range():
    samples = [{"x": np.full(1, number)} for number in range(5)]
    reader = _Reader(samples, lambda what, done, total: None)
    reader.set_range(1, 3)
    assert [reader.get_next(), reader.get_next(), reader.get_next()] == [*samples[1:3], None]


def test_recipes_that_make_no_sense_are_refused(floats, tmp_path):
    source, samples = floats
    messages = [
        (Recipe("maxmin"), "a method of minmax, entropy, percentile, distribution, found maxmin"),
        (Recipe(exclude=["secund"]), "a node of the model, found secund; did you mean second?"),
        (Recipe(ranges={"bb": (0, 1)}), "a tensor of the model, found bb; did you mean b?"),
        (Recipe(ranges={"b": (1, 1)}), "a range of b that isn't empty, found 1 to 1"),
    ]
    for recipe, message in messages:
        with pytest.raises(ModelError) as caught:
            quantize(source, tmp_path / "q.onnx", samples, recipe=recipe)
        assert str(caught.value) == f"{source}: expected {message}"
    assert list(tmp_path.iterdir()) == []


def test_options_that_make_no_sense_are_refused(floats, vdla, tmp_path):
    source, _ = floats
    target = tmp_path / "q.onnx"
    with pytest.raises(UsageError) as caught:
        api.quantize(source, target, Quantize(calibrate="most"))
    assert str(caught.value) == (
        "--calibrate: expected one of minmax, entropy, percentile, distribution, found most"
    )
    for options, message in (
        (("--percentile", 99), "--percentile: expected --calibrate percentile, found minmax"),
        (("--range", "x=3,1"), "--range: expected TENSOR=LOW,HIGH with LOW < HIGH, found 'x=3,1'"),
        (("--mean", "1,b"), "--mean: expected numbers with commas between, found '1,b'"),
    ):
        done = vdla("quantize", source, "-o", target, *options)
        assert message in done.err
        assert not target.exists()
