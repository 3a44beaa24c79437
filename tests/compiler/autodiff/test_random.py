"""Gradients of random models against differences: a slice of ``fuzz_gradients.py``."""

from __future__ import annotations

import fuzz_gradients
from fuzz_gradients import outcome, outcome_of
from random_gradients import random_model

from vdla.compiler.autodiff.elements import PARTIAL, SLOPES

MODELS = 12
COMMAND = "python tests/support/fuzz_gradients.py --seed {} --models 1"


def test_gradients_of_random_models():
    right = 0
    for seed in range(MODELS):
        _, (kind, text), _ = outcome_of(seed)
        assert kind != "wrong", f"{COMMAND.format(seed)}: {text}"
        right += kind == "right"
    assert right > 0.9 * MODELS


def test_a_wrong_rule_is_a_fault(monkeypatch):
    """In the rules of functions and of products, element by element."""
    monkeypatch.setitem(SLOPES, "abs", lambda x, y, s: y)
    monkeypatch.setitem(PARTIAL, "mul", lambda a, b, y: (a, b))
    kinds = [outcome(*random_model(seed), compiled=False)[0] for seed in range(10)]
    assert kinds.count("wrong") > 2


def test_other_numbers_of_compiled_code_are_a_fault(monkeypatch):
    """Roundings of float32 are others than those of float64."""
    monkeypatch.setattr(fuzz_gradients, "FLOAT32", 0)
    outcomes = [outcome_of(seed)[1] for seed in range(0, 50, fuzz_gradients.COMPILED)]
    assert any(kind == "wrong" and text.startswith("compiled: ") for kind, text in outcomes)
