"""Weights of quantized networks that are trained to give what the floats give."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from vdla.compiler.finetuning import finetuned, layers_with_weights
from vdla.compiler.frontend.errors import ModelError
from vdla.compiler.models.calibration import Pixels
from vdla.compiler.models.quantizer import Quantizer
from vdla.compiler.models.quantizer import samples_for as batches_of
from vdla.compiler.models.recipe import Recipe
from vdla.compiler.models.scoring import SignalToNoise

SHAPE = (1, 4, 6, 6)


def network(zeros=False):
    """Two convolutions and a dense layer of random weights, as a file of floats."""
    rng = np.random.default_rng(1)
    weights = {
        "w1": rng.standard_normal((8, 4, 3, 3)) / 6, "w2": rng.standard_normal((8, 8, 3, 3)) / 8,
        "w3": rng.standard_normal((8, 5)) / 3, "b3": rng.standard_normal(5),
    }  # fmt: skip
    if zeros:
        weights["w2"][:, 4:] = 0
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="second", pads=[1] * 4),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="third"),
    ]
    graph = helper.make_graph(
        nodes, "net",
        [helper.make_tensor_value_info("x", 1, SHAPE)],
        [helper.make_tensor_value_info("y", 1, (1, 5))],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def quantized(recipe, count=32, **kind):
    """Floats, the quantized network, and samples."""
    model, rng = network(**kind), np.random.default_rng(2)
    calibration = {"x": rng.standard_normal((count, *SHAPE[1:])).astype(np.float32)}
    samples = batches_of(model, "net", calibration, None, Pixels())
    quantizer = Quantizer(model, "net", samples)
    return quantizer.floats(recipe), quantizer.quantized(recipe), samples


def codes(model):
    """Integers of constants, by name."""
    kinds = onnx.TensorProto.INT8, onnx.TensorProto.INT4
    return {
        t.name: numpy_helper.to_array(t).astype(np.int32)
        for t in model.graph.initializer
        if t.data_type in kinds
    }


RECIPES = [
    Recipe(weights="int4"),
    Recipe(weights="int4", group=4),
    Recipe(weights="int4", gptq=True),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=["int4", "groups", "gptq"])
def test_outputs_are_nearer_to_the_floats(recipe):
    """On samples that nobody has seen; scales, ranges and types stay."""
    floats, first, samples = quantized(recipe)
    tuning = finetuned(floats, first, samples, {"first", "second", "third"}, 100)
    assert sorted(tuning.layers) == ["first", "second", "third"]
    assert tuning.after > tuning.before + 2
    rng = np.random.default_rng(9)
    unseen = [{"x": rng.standard_normal(SHAPE).astype(np.float32)} for _ in range(16)]
    score = SignalToNoise(floats, unseen)
    assert score(tuning.model) > score(first) + 2
    before, after = (
        {t.name: (t.data_type, tuple(t.dims)) for t in each.graph.initializer}
        for each in (first, tuning.model)
    )
    assert before == after
    changed = {n for n, each in codes(first).items() if (codes(tuning.model)[n] != each).any()}
    assert changed
    assert changed <= {"w1_quantized", "w2_quantized", "w3_quantized"}


def test_layers_that_are_not_named_stay():
    floats, first, samples = quantized(Recipe(weights="int4"))
    tuning = finetuned(floats, first, samples, {"second"}, 60)
    assert tuning.layers == ["second"]
    changed = {n for n, each in codes(first).items() if (codes(tuning.model)[n] != each).any()}
    assert changed == {"w2_quantized"}


def test_weights_that_were_pruned_stay_zero():
    floats, first, samples = quantized(Recipe(weights="int4"), zeros=True)
    tuning = finetuned(floats, first, samples, {"second"}, 60)
    after = codes(tuning.model)["w2_quantized"]
    assert not after[:, 4:].any()
    assert (after != codes(first)["w2_quantized"]).any()


def test_what_is_no_better_is_not_kept():
    """One step of a tiny network that is exact already."""
    _, first, samples = quantized(Recipe())
    tuning = finetuned(first, first, samples, {"first"}, 3)
    assert tuning.before == tuning.after == np.inf
    assert codes(tuning.model).keys() == codes(first).keys()
    for name, each in codes(first).items():
        np.testing.assert_array_equal(codes(tuning.model)[name], each)


def test_no_layer():
    floats, first, samples = quantized(Recipe())
    assert finetuned(floats, first, samples, set(), 10).model is first
    assert sorted(layers_with_weights(first)) == ["first", "second", "third"]


def test_the_same_samples_give_the_same_weights():
    floats, first, samples = quantized(Recipe(weights="int4"))
    one, other = (finetuned(floats, first, samples, {"first"}, 20).model for _ in range(2))
    assert one.SerializeToString() == other.SerializeToString()


def test_a_network_without_floats_to_compare_with():
    floats, first, samples = quantized(Recipe())
    for model in (floats, first):
        model.graph.node.append(helper.make_node("ArgMax", ["y"], ["best"], name="best", axis=1))
        del model.graph.output[:]
        model.graph.output.append(helper.make_tensor_value_info("best", 7, (1, 1)))
    with pytest.raises(ModelError, match="net: expected an output of floats, to compare with"):
        finetuned(floats, first, samples, {"first"}, 10, "net")


def test_progress_is_told():
    floats, first, samples = quantized(Recipe(weights="int4"))
    seen = []
    finetuned(floats, first, samples, {"first"}, 5, progress=lambda *each: seen.append(each))
    assert seen == [("fine-tuning", n, 5) for n in range(1, 6)]
