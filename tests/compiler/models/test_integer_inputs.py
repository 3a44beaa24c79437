"""Models whose inputs are whole numbers, as words are, quantized by the API."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla import api
from vdla.analysis.ort import ort_run
from vdla.compiler.frontend.errors import ModelError
from vdla.options import Quantize

WORDS, FEATURES, LENGTH = 20, 16, 6


@pytest.fixture
def path(tmp_path):
    """Words that are looked up, and a dense layer."""
    rng = np.random.default_rng(0)
    arrays = {
        "table": rng.standard_normal((WORDS, FEATURES)),
        "weight": rng.standard_normal((FEATURES, FEATURES)),
    }
    nodes = [
        helper.make_node("Gather", ["table", "words"], ["x"], "looked_up"),
        helper.make_node("MatMul", ["x", "weight"], ["y"], "dense"),
    ]
    graph = helper.make_graph(
        nodes, "words",
        [helper.make_tensor_value_info("words", TensorProto.INT64, (1, LENGTH))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, LENGTH, FEATURES))],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in arrays.items()],
    )  # fmt: skip
    file = tmp_path / "f.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), file)
    return file


def words(count=12):
    return np.random.default_rng(1).integers(0, WORDS, (count, LENGTH))


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32])
def test_samples_of_words_quantize_what_is_behind_them(dtype, path, tmp_path):
    target = tmp_path / "q.onnx"
    api.quantize(path, target, Quantize({"words": words().astype(dtype)}))
    inputs = {"words": words(1)}
    floats, result = ort_run(path, inputs)["y"], ort_run(target, inputs)["y"]
    assert np.abs(floats - result).max() < 0.05 * np.abs(floats).max()
    noise = api.quantization_noise(path, target, Quantize({"words": words()}))
    assert min(layer.own for layer in noise.layers) > 25
    how = Quantize({"words": words()}, auto=True, snr=25, config="tiny")
    assert api.search_quantization(path, target, how).chosen.score >= 25


@pytest.mark.parametrize(("samples", "said"), [
    (None, "input words: expected --calibration with samples of int64, found none"),
    ({"words": words() + 0.5},
     "expected whole numbers in words, which is int64, found others"),
])  # fmt: skip
def test_samples_that_are_no_words(samples, said, path, tmp_path):
    with pytest.raises(ModelError, match=said):
        api.quantize(path, tmp_path / "q.onnx", Quantize(samples))
    assert not (tmp_path / "q.onnx").exists()


def test_a_folder_of_images_for_words(path, tmp_path):
    (tmp_path / "images").mkdir()
    with pytest.raises(
        ModelError, match=r"expected an .npz of int64 for input words, found a fold"
    ):
        api.quantize(path, tmp_path / "q.onnx", Quantize(tmp_path / "images"))


def test_other_elements_are_refused(path, tmp_path):
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.BOOL
    del model.graph.node[:]
    model.graph.node.append(helper.make_node("Cast", ["words"], ["y"], to=TensorProto.FLOAT))
    onnx.save(model, path)
    with pytest.raises(ModelError, match="expected float32, int32 or int64 elements, found bool"):
        api.quantize(path, tmp_path / "q.onnx", Quantize({"words": words()}))
