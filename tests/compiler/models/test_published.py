"""Bundled networks in the spelling of others: whole on the accelerator, with the file's numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import vdla
from vdla.analysis.ort import cosine, ort_run
from vdla.compiler.models import model_path, published
from vdla.compiler.models.transformers import Sizes
from vdla.compiler.placement import ACCELERATOR

FULL = "paper-full"


def between(module):
    """Operators of the host between the accelerator's first and last."""
    rows = module.metadata["placement"]
    places = [n for n, row in enumerate(rows) if row["device"] == ACCELERATOR]
    inside = rows[places[0] : places[-1]]
    return [row["reason"] for row in inside if row["device"] != ACCELERATOR]


def types(path):
    return {node.op_type for node in onnx.load(path).graph.node}


def test_a_quantizer_leaves_lstm_in_floats(tmp_path):
    path = tmp_path / "q.onnx"
    samples = [{"input": x[None]} for x in published.speech(2)]
    published.write_as_left(published.speech_bilstm(hidden=8, classes=4), path, samples)
    model = onnx.load(path)
    (node, *_) = [n for n in model.graph.node if n.op_type == "LSTM"]
    floats = {t.name for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    assert {node.input[1], node.input[2]} <= floats
    assert "QuantizeLinear" in types(path)


def test_of_products_alone_the_rest_stays_in_floats(tmp_path):
    path = tmp_path / "q.onnx"
    samples = [{"input": x[None]} for x in published.sounds(2)]
    sizes = Sizes(blocks=1, features=32, heads=2, length=published.AUDIO.length)
    published.write_products(published.audio_encoder(sizes), path, samples)
    model = onnx.load(path)
    made = {name: node.op_type for node in model.graph.node for name in node.output}
    kinds = {made.get(node.input[0]) for node in model.graph.node if node.op_type == "MatMul"}
    assert kinds == {"DequantizeLinear"}
    (norm, *_) = [n for n in model.graph.node if n.op_type == "LayerNormalization"]
    assert made[norm.input[0]] == "Add"


@pytest.mark.long
@pytest.mark.parametrize("name", ["mobilenetv3", "resnet18-nhwc", "speech-bilstm", "audio-encoder"])
def test_they_are_whole_and_near_onnxruntime(name):
    path = model_path(name)
    module = vdla.compile(name, FULL)
    assert len(between(module)) <= 4
    inputs = {each: np.zeros(module.tensors[each].shape, np.float32) for each in module.inputs}
    rng = np.random.default_rng(0)
    inputs = {each: rng.standard_normal(x.shape).astype(np.float32) for each, x in inputs.items()}
    exact, fused = (ort_run(path, inputs, fuse=fuse) for fuse in (False, True))
    result = vdla.run(module, inputs).outputs
    for output, wanted in exact.items():
        own = cosine(fused[output], wanted)
        assert cosine(result[output], wanted) >= min(0.999, own - 0.001)
