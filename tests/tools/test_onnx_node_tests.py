"""ONNX's node tests: none is wrong, none ends in a traceback; what the table says of them."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vdla.compiler.frontend.control import CONTROL
from vdla.compiler.frontend.ops import CONVERTERS
from vdla.compiler.frontend.sequences import OPERATORS

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "tools" / "onnx_node_tests.py"
SOME = ("Add", "Adam", "Relu", "Gemm", "Transpose", "Slice", "GatherND", "CumSum", "NonZero",
        "Mish", "Bernoulli")  # fmt: skip


@pytest.fixture(scope="module")
def runner():
    spec = importlib.util.spec_from_file_location("onnx_node_tests", RUNNER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["onnx_node_tests"] = module
    spec.loader.exec_module(module)
    return module


def test_some_operators():
    command = [sys.executable, RUNNER, "--json", *(f"--operator={name}" for name in SOME)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert (found["wrong"], found["error"]) == (0, 0)
    assert {name: row["passed"] == row["total"] for name, row in found["operators"].items()} == {
        name: name != "Bernoulli" for name in SOME
    }
    ran = {name for name, row in found["operators"].items() if row["passed_onnxruntime"]}
    assert ran == {"NonZero"}
    assert next(iter(found["operators"]["Bernoulli"]["reasons"])) == (
        "model: node Bernoulli_0 (Bernoulli): expected a result that follows from the inputs, "
        "found random numbers"
    )


@pytest.mark.long
def test_some_operators_on_a_gpu(gpu):
    names = ("Gemm", "Softmax", "ConvTranspose")
    command = [sys.executable, RUNNER, "--device=gpu", "--part=1/3", "--json"]
    command += [f"--operator={name}" for name in names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["passed"] == found["passed_gpu"] == found["total"] > 10


def test_what_is_wrong_is_seen(runner):
    x = np.array([1.0, 2.0], np.float32)
    assert runner.difference([x], [x], 1e-3, 1e-7) == ""
    assert runner.difference([x], [x + 0.01], 1e-3, 1e-7) == "output 0: 2 of 2 elements differ"
    assert (
        runner.difference([x], [x[:1]], 1e-3, 0)
        == "output 0: expected float32[1], found float32[2]"
    )
    assert "expected int64[2]" in runner.difference([x], [x.astype(np.int64)], 1e-3, 0)
    assert runner.difference([x, x], [x], 1e-3, 0) == "expected 1 outputs, found 2"


def test_the_table_names_the_operators_that_have_converters():
    page = (ROOT / "docs" / "onnx.md").read_text()
    _, _, rest = page.partition("## Operators that vdla compiles\n")
    named = re.findall(r"^\| `(\w+)` \|", rest.partition("\n## ")[0], re.MULTILINE)
    assert set(named) == {*CONVERTERS, *OPERATORS, *CONTROL, "Adagrad", "Adam", "Momentum"}
    assert named == sorted(named)
