"""Single operators beside peers: the cases, one that is measured, and what is refused."""

from __future__ import annotations

import argparse
import sys

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from scripts import load_script

operators = load_script("benchmarks/operators.py")
CASES = [case for group in operators.GROUPS for case in group()]


class Slow:
    """A peer that does nothing."""

    name, version = "nothing", "1"

    def ready(self, path, shapes, threads):
        return lambda inputs: None


def test_cases_are_models_of_their_names():
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        model = onnx.shape_inference.infer_shapes(case.model(), strict_mode=True)
        (y,) = model.graph.output
        assert y.type.tensor_type.elem_type == case.output, case.name
        assert [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == [
            *case.shape
        ]


def test_a_case_is_measured(tmp_path):
    case = next(case for case in CASES if "1×16×256" in case.name)
    options = argparse.Namespace(threads=1, runs=1, peers=[Slow()], clock="wall")
    row = operators.measure(case, options, tmp_path)
    assert row.name == case.name
    assert row.functions_ms > 0
    assert {*row.ratios} == {"nothing"}
    assert row.error < 1e-5
    x = np.ones(case.shape, np.float32)
    (y,) = ReferenceEvaluator(case.model()).run(["y"], {"x": x})
    assert y.shape == case.shape


def test_a_part_of_no_name_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["operators.py", "--only", "sort"])
    with pytest.raises(SystemExit):
        operators.main()
    assert "--only: expected a part of a case's name, found sort" in capsys.readouterr().err
