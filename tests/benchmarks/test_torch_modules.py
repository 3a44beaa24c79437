"""PyTorch modules of the benchmarks: their own results, with the bits of their ONNX files."""

from __future__ import annotations

import pytest
from scripts import load_script

pytest.importorskip("torch")
pytest.importorskip("torchao")
modules = load_script("benchmarks/torch_modules.py")
quantized = load_script("benchmarks/torch_quantized.py")
training = load_script("benchmarks/torch_training.py")


@pytest.mark.long
@pytest.mark.parametrize("name", modules.CASES)
def test_a_module_is_itself(name):
    outcome = modules.outcome(modules.CASES[name])
    assert outcome.difference < modules.TOLERANCE
    assert outcome.same
    assert outcome.host == 0


@pytest.mark.long
@pytest.mark.parametrize("recipe", quantized.RECIPES)
@pytest.mark.parametrize("name", quantized.NAMES)
def test_a_quantized_module_is_itself(name, recipe):
    outcome = quantized.outcome(name, recipe, "paper-full")
    assert outcome.same
    assert outcome.decibels > 45


@pytest.mark.long
@pytest.mark.parametrize("way", training.WAYS)
def test_a_trained_network_is_as_accurate(way):
    outcome = training.outcome(way, "paper-full", epochs=2)
    assert abs(outcome.accelerator - outcome.pytorch) < 0.003
    assert outcome.pytorch > 0.9
