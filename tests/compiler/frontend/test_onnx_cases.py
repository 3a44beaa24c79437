"""ONNX's own node tests, operator by operator: what docs/onnx.md says of each, and none wrong."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RUNNER = ROOT / "tools" / "onnx_node_tests.py"
PAGE = (ROOT / "docs" / "onnx.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| ([\d |]+) \|$", re.MULTILINE)
ROWS = {name: [int(count) for count in counts.split("|")] for name, counts in ROW.findall(PAGE)}
KEYS = ("total", "passed", "passed_onnxruntime", "passed_folded", "refused")


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("onnx_node_tests", RUNNER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["onnx_node_tests"] = module
    spec.loader.exec_module(module)
    return module


def test_the_tables_have_every_case():
    sums = dict(zip(KEYS, map(sum, zip(*ROWS.values(), strict=True)), strict=True))
    assert sums["total"] == 1884
    assert sums["passed"] + sums["refused"] == 1884  # and so none is wrong
    assert sums["passed"] - sums["passed_onnxruntime"] >= 1300


@pytest.mark.long
@pytest.mark.cases
@pytest.mark.parametrize("operator", [name for name, (total, *_) in ROWS.items() if total])
def test_cases(operator, runner):
    found = runner.report(runner.run_cases(runner.load_cases((operator,))))
    assert found["failed"] == {}
    assert [found[key] for key in KEYS] == ROWS[operator]
