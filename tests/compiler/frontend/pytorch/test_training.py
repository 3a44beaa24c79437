"""Modules of training with quantization: what PyTorch computes with them, on the accelerator."""

from __future__ import annotations

import pytest

import vdla

torch = pytest.importorskip("torch")
from torch.ao import quantization  # noqa: E402

from vdla.compiler.frontend.pytorch.training import as_in_inference  # noqa: E402

nn = torch.nn
X = torch.linspace(-1, 1, 2 * 3 * 64).reshape(2, 3, 8, 8)


class Net(nn.Module):
    """Two convolutions with batch normalizations, of which the first is fused."""

    def __init__(self):
        super().__init__()
        self.quantizer, self.dequantizer = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv1, self.norm1, self.relu1 = nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU()
        self.conv2, self.norm2, self.relu2 = nn.Conv2d(16, 16, 3), nn.BatchNorm2d(16), nn.ReLU()

    def forward(self, x):
        x = self.relu1(self.norm1(self.conv1(self.quantizer(x))))
        return self.dequantizer(self.relu2(self.norm2(self.conv2(x))))


def trained(version, backend="x86", switch=quantization.disable_observer):
    """A network with fake quantizers that have seen a few batches."""
    torch.manual_seed(0)
    module = quantization.fuse_modules_qat(Net().train(), [["conv1", "norm1", "relu1"]])
    module.qconfig = quantization.get_default_qat_qconfig(backend, version=version)
    module = quantization.prepare_qat(module)
    for _ in range(3):
        module(X + 0.1 * torch.randn_like(X))
    return module.eval().apply(switch)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("version", "backend"), [pytest.param(0, "qnnpack", marks=pytest.mark.long), (1, "x86")]
)
def test_convolutions_run_on_the_accelerator(version, backend):
    module = trained(version, backend)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    net = vdla.compile(module, (X[:1],), config="paper-full")
    placed = net.module.metadata["placement"]
    on_vdla = [row["op"] for row in placed if row["device"] == "vdla"]
    assert on_vdla == ["QConv2d", "QConv2d", "QBatchNorm"]
    assert {row["op"] for row in placed} - set(on_vdla) <= {"Clip", "Quantize", "Dequantize"}
    scale = float(module.norm2.activation_post_process.scale)
    difference = (net(X[:1]) - module(X[:1])).abs()
    assert difference.max() < 1.01 * scale  # a step, where a quotient lies between two
    assert (difference > scale / 2).float().mean() < 0.01
    after = module.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(value, after[name]) for name, value in before.items())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("version", [0, 1])
def test_disabled_quantizers_leave_floats(version):
    module = trained(version, switch=quantization.disable_fake_quant)
    module.apply(quantization.disable_observer)
    net = vdla.compile(module, (X,), device="cpu")
    assert net.check(X).relative < 1e-5
    assert not any("Quantize" in row["op"] for row in net.module.metadata["placement"])


@pytest.mark.filterwarnings("ignore")
def test_a_module_is_restored_after_an_error():
    module = trained(0)
    names = list(module.state_dict())

    def stop():
        with as_in_inference(module):
            assert module.quantizer.activation_post_process.fake_quant_enabled == [1]
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stop()
    assert list(module.state_dict()) == names
    assert torch.equal(module(X), module(X))
