"""Gradients beside PyTorch's: a case of each kind, and what a wrong one is."""

from __future__ import annotations

import pytest
from scripts import load_script

torch = pytest.importorskip("torch")
gradients = load_script("benchmarks/gradients.py")
OPERATORS = "Conv", "LSTM", "ScatterND"


@pytest.mark.parametrize("op", OPERATORS)
def test_gradients_are_pytorchs(op):
    assert gradients.difference(gradients.CASES[[c.op for c in gradients.CASES].index(op)]) < 1e-5


def test_another_function_has_other_gradients(monkeypatch):
    case = next(case for case in gradients.CASES if case.op == "Sin")
    monkeypatch.setitem(gradients.FUNCTIONS, "Sin", lambda fields, x: torch.cos(x))
    assert gradients.difference(case) > 0.1


def test_operators_that_pytorch_lacks_are_named(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["gradients.py", "--only", "ReverseSequence,Neg"])
    with pytest.raises(SystemExit) as end:
        gradients.main()
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert "not compared, no such function: ReverseSequence" in printed
    assert "1 cases of 1 operators" in printed
