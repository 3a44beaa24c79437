"""Networks whose kernels are the LLVM IR of PTX, run by this processor: the processor's results."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from scripts import load_script

import vdla
from tests.support.host_gpu import HostGpu, sources_for_host
from tests.support.random_graphs import float_model, quantized, sample
from vdla.api.modules import random_inputs
from vdla.runtime.executor import Executor


@pytest.fixture
def check(monkeypatch, tmp_path):
    """Compares a model's results with the processor's; integers are equal."""
    sources_for_host(monkeypatch)

    def compare(model, inputs=None) -> None:
        if not isinstance(model, str):
            path = tmp_path / "model.onnx"
            onnx.save(model, path)
            model = path
        inputs = inputs or random_inputs(vdla.compile(model, device="cpu"))
        wanted = vdla.run(model, inputs, device="cpu").outputs
        module = vdla.compile(model, device="gpu", gpu="sm_80")
        found = Executor(module, gpu=HostGpu()).run(inputs).outputs
        for name, want in wanted.items():
            if want.dtype.kind in "iub":
                np.testing.assert_array_equal(found[name], want)
            else:
                scale = np.abs(want).max(initial=1e-6)
                assert np.abs(found[name] - want).max(initial=0) / scale < 1e-4, name

    return compare


def test_digits(check):
    check("digits")


@pytest.mark.long
def test_a_transformer(check):
    check(load_script("benchmarks/sequences.py").encoder())


QUICK = pytest.param(2)
LONG = [pytest.param(seed, marks=pytest.mark.long) for seed in (0, 1, *range(3, 9))]


@pytest.mark.parametrize("seed", [QUICK, *LONG])
def test_random_graphs(seed, check):
    model = float_model(seed + 3700)
    check(model, sample(model, 1))


@pytest.mark.parametrize("seed", [QUICK, *LONG])
def test_integers_of_random_graphs(seed, check):
    model = quantized(float_model(seed + 3710, integer=True), 1)
    check(model, sample(model, 1))
