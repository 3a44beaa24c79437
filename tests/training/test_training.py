"""Training scripts: a small part of each training, by which the loss falls and more is right."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import vdla
from tests.support.scripts import load_script
from vdla.isa.config import load_config
from vdla.names.models import model_file


@pytest.fixture(scope="module")
def digits():
    return load_script("training/digits.py")


def test_digits_learn(digits, capsys):
    """Eight epochs of sixty."""
    x, labels, test, wanted = digits.load()
    p = digits.train(x, labels, epochs=8)
    assert digits.accuracy(p, test, wanted) > 0.85
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("step 170 of 176: loss 0.")


def test_digits_are_the_files(digits):
    """What is trained is the network that the file has."""
    ort = pytest.importorskip("onnxruntime")
    p = digits.initial(np.random.default_rng(0))
    x = np.random.default_rng(1).uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)
    session = ort.InferenceSession(digits.model(p).SerializeToString())
    (want,) = session.run(None, {"image": x})
    np.testing.assert_allclose(vdla.fn(digits.logits)(p, x), want, rtol=1e-4, atol=1e-5)


def trained_a_little(script, params, batches, steps, rate, most=None):
    descent = load_script("training/descent.py")
    adam = vdla.optim.Adam()
    step = descent.compiled(script.loss, adam, most)
    rates = descent.falling(rate, steps)
    return descent.descend(step, adam, params, batches, rates)


@pytest.mark.long
def test_characters_learn():
    """Sixty steps of eight thousand: better than each character by how often it comes."""
    script = load_script("training/characters.py")
    text, rest = script.documents()
    rng = np.random.default_rng(0)
    batches = script.batches(text, script.BATCH, rng)
    p, losses = trained_a_little(script, script.parameters(rng), batches, 60, 1e-2, script.MOST)
    shares = np.bincount(text, minlength=script.CHARACTERS) / len(text)
    alone = -np.sum(shares * np.log(np.maximum(shares, 1e-9)))
    assert losses[0] > 4
    tests = script.windows(rest, 32, rng)
    assert vdla.fn(script.loss)(p, tests[:, :-1], tests[:, 1:]) < alone


@pytest.mark.long
def test_scenes_learn(tmp_path):
    """Two hundred steps of two thousand: ground and digits are told apart."""
    script = load_script("training/scenes.py")
    every, own = script.main(tmp_path, steps=200)
    assert every > 0.7
    assert own > 0.2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["scenes.onnx", "scenes_test.npz"]


def test_scenes_are_the_files():
    """What is trained is the network that the file has."""
    ort = pytest.importorskip("onnxruntime")
    script = load_script("training/scenes.py")
    p = script.initial(np.random.default_rng(0))
    x = np.random.default_rng(1).uniform(0, 1, (1, 1, 32, 32)).astype(np.float32)
    (want,) = ort.InferenceSession(script.model(p).SerializeToString()).run(None, {"scene": x})
    result = vdla.fn(script.logits)(p, x).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(result, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["characters", "patches"])
def test_the_others_are_the_files(name):
    """What is trained is the network that the file has."""
    ort = pytest.importorskip("onnxruntime")
    script, rng = load_script(f"training/{name}.py"), np.random.default_rng(0)
    if name == "patches":
        model = script.network()
        p, x = script.initial(model), rng.uniform(0, 1, (1, 1, 8, 8)).astype(np.float32)
        found = vdla.fn(script.logits)(p, x)
    else:
        p = script.parameters(rng)
        model, x = script.model(p), rng.integers(0, script.CHARACTERS, (1, script.LENGTH))
        states = vdla.fn(script.states)(p, x)[:, 0]
        found = (states @ p["head"] + p["offset"])[None]
    session = ort.InferenceSession(model.SerializeToString())
    (want,) = session.run(None, {model.graph.input[0].name: x})
    np.testing.assert_allclose(found, want, rtol=1e-3, atol=1e-4)


@pytest.mark.long
def test_patches_learn(digits):
    """A step is repeated on one batch, which is learned."""
    script = load_script("training/patches.py")
    x, labels, *_ = digits.load()
    batch = x[:32], labels[:32]
    p = script.initial(script.network())
    p, losses = trained_a_little(script, p, iter([batch] * 40), 40, 3e-3)
    assert losses[-1] < losses[0] / 10
    assert (vdla.fn(script.logits)(p, batch[0]).argmax(axis=1) == batch[1]).mean() > 0.95


@pytest.mark.long
def test_a_last_block_learns_in_integers(digits, tmp_path):
    """Three epochs of twenty on turned images: integers are near the floats."""
    script = load_script("training/last_block.py")
    model, config = onnx.load(model_file("patches")), load_config("paper-full")
    start = script.weights(model)
    assert {name.split(".")[0] for name in start} == {"block1", "norm", "head"}
    cost = script.cost_of_step(start, config, "cortex-a9")
    assert 1 / sum(cost.per_image(config)[1:]) > 100  # images a second
    images, labels, tests, wanted = digits.load()
    path = script.front(model, tmp_path)
    known, unknown = (
        script.features_of(path, np.rot90(each, axes=(2, 3)).copy(), config)
        for each in (images, tests)
    )
    products = np.matmul, vdla.dynamic_matmul
    before, _ = (script.score(start, unknown, wanted, each) for each in products)
    floats, integers = (
        script.score(script.tuned(start, (known, labels), each, 1, 3), unknown, wanted, each)
        for each in products
    )
    assert before < 20 < 60 < floats
    assert abs(integers - floats) < 3
