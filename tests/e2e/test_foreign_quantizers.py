"""Files that other people's quantizers wrote, against onnxruntime without its optimizations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scripts import load_script

from vdla.isa.config import load_config

FOLDER = Path(__file__).parents[1] / "data" / "foreign_quantizers"
SAMPLES = 2
# Of each file the operators that the host runs between the accelerator's, all of which the file has
# in floats; and the quantized ones among them, whose other operand nothing quantizes.
FILES = {
    "encoder.aimet-s8": (0, 0),
    "encoder.quark-a8w8": (0, 0),
    "mixed.aimet-w4": (0, 0),
    "mixed.brevitas-narrow": (0, 1),
    "mixed.nncf-mixed": (7, 0),
    "residual.brevitas-skewed": (0, 0),
    "residual.neural-operator": (0, 0),
    "residual.onnxruntime-qop-u8": (0, 0),
    "residual.quark-xint8": (0, 0),
}
benchmark = load_script("benchmarks/foreign_quantizers.py")


@pytest.mark.parametrize("name", FILES)
def test_files_run_whole_and_equal_onnxruntime(name):
    path, rng = FOLDER / f"{name}.onnx", np.random.default_rng(3)
    model = benchmark.runnable(path)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    inputs = [{"input": rng.standard_normal(shape).astype(np.float32)} for _ in range(SAMPLES)]
    row = benchmark.measured(path, inputs, load_config("paper-full"))
    assert not row.fault
    assert (len(row.host), len(row.refused)) == FILES[name], (row.host, row.refused)
    assert row.steps <= 1.01
    assert row.share <= 40


def test_every_file_is_tested():
    assert {path.stem for path in FOLDER.glob("*.onnx")} == {*FILES}
    assert max(path.stat().st_size for path in FOLDER.iterdir()) < 61_000
