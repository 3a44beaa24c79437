"""PyTorch modules through ``vdla.compile``: calls, open sizes, calibration, comparisons, errors."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import vdla
from vdla.options import Run

torch = pytest.importorskip("torch")


def make_net():
    """A small network of floats, in evaluation mode."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(3, 8, 3)
            self.dense = torch.nn.Linear(8, 4)

        def forward(self, x, scale=1.0):
            return {"logits": self.dense(torch.relu(self.conv(x)).mean((2, 3))) * scale}

    torch.manual_seed(5)
    return Net().eval()


def image(batch=1, seed=0):
    return torch.randn(batch, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(scope="module")
def net():
    """The network, compiled for the processor with an open batch; at most two sizes stay."""
    return vdla.compile(
        make_net(), (image(2),), sizes={"x": {0: "batch"}}, remembered=2, device="cpu"
    )


@pytest.fixture(scope="module")
def quantized():
    """The network, quantized with a loader's batches of images and labels, on the simulator."""
    loader = [(image(4, seed), torch.zeros(4)) for seed in range(4)]
    return vdla.compile(make_net(), (image(),), calibration=loader, config="tiny")


def test_a_call_returns_what_the_module_returns(net):
    x = image(2, 7)
    result = net(x)
    assert list(result) == ["logits"]
    torch.testing.assert_close(result["logits"], net.function(x)["logits"], rtol=1e-5, atol=1e-5)


def test_open_sizes_are_compiled_when_they_are_met_and_the_last_ones_stay(net):
    for batch in (2, 3, 5, 3):
        assert net.check(image(batch)).relative < 1e-5
    assert list(net._ready) == [((5, 3, 8, 8),), ((3, 3, 8, 8),)]
    kept = net.executor({"x": image(3).numpy()})
    net(image(3))
    assert next(reversed(net._ready.values())) is kept


def test_results_share_no_memory_with_the_next_call(net):
    first = net(image(2, 1))["logits"]
    before = first.clone()
    net(image(2, 2))
    assert torch.equal(first, before)


def test_a_loader_quantizes_and_labels_are_left_alone(quantized):
    agreement = quantized.check(image(1, 9))
    assert 25 < agreement.decibels < 80
    assert "largest difference" in str(agreement)
    run = quantized.run(image())
    assert run.cycles > 0
    devices = [line.split()[2] for line in quantized.report().splitlines()[2:]]
    assert devices.count("vdla") >= 3


def test_a_function_is_saved_as_a_module_and_as_onnx(quantized, tmp_path):
    quantized.save(tmp_path / "net.vdla")
    quantized.export(tmp_path / "net.onnx")
    x = image(1, 3)
    own = quantized(x)["logits"].numpy()
    with pytest.raises(vdla.UserError, match=r"net\.onnx: expected a float model"):
        vdla.quantize(tmp_path / "net.onnx", tmp_path / "q.onnx")
    for name in ("net.vdla", "net.onnx"):
        result = vdla.run(str(tmp_path / name), Run({"x": x.numpy()}, config="tiny"))
        np.testing.assert_array_equal(next(iter(result.outputs.values())), own)


def refusal(*args, **kwargs):
    """The error of a compilation."""
    with pytest.raises(vdla.UserError) as caught:
        vdla.compile(*args, **kwargs)
    return str(caught.value)


def test_what_cannot_be_compiled_is_refused_in_one_line(net):
    module = make_net()
    assert refusal(module, (image(),), config="tiny") == (
        'Net: expected a quantized network; calibration=… quantizes it, device="cpu" takes floats, '
        "found one of floats"
    )
    assert refusal(make_net().train(), (image(),), device="cpu") == (
        "Net: expected a module in evaluation mode, as by .eval(), found one in training"
    )
    assert refusal(module, (image(),), devise="cpu").endswith("did you mean device?")
    assert refusal(module, (image(),), config="tiny", calibration=[]) == (
        "calibration: expected batches of arguments, found none"
    )
    assert refusal(module, (image(),), config="tiny", calibration=[{"y": image()}]) == (
        "calibration: expected batches of x, found one of 0 arguments"
    )
    assert refusal(type(module), device="cpu") == (
        "model: expected a module, a .vdla or ONNX file or a bundled name, found type"
    )
    for wrong in (image(2)[0], image(2)[:, :2]):
        with pytest.raises(vdla.UserError) as caught:
            net(wrong)
        assert str(caught.value) == (
            f"input x: expected shape [batch, 3, 8, 8], found {list(wrong.shape)}"
        )


FRAMEWORKS = ("torch", "jax", "tflite", "onnxscript", "jax2onnx")
SCRIPT = """
import sys
import vdla
vdla.run("digits", device="cpu")
vdla.compile
print([name for name in sys.argv[1:] if name in sys.modules])
"""


def test_frameworks_are_not_imported_for_models_of_onnx():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *FRAMEWORKS], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
