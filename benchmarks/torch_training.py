"""Accuracy of networks that PyTorch trained for int8: in PyTorch, and on the accelerator.

    python benchmarks/torch_training.py [-c CONFIG] [--epochs N] [WAY …]

trains a small convolutional network on the digits of ``training`` (8 × 8 pixels, of which a fifth
is for the test), in floats at first and then with quantization in mind:

    x86, qnnpack      prepare_qat of torch.ao.quantization, its configs; modules fused
    not fused         the same, with each batch normalization behind a quantized convolution
    XNNPACK, Inductor prepare_qat_pt2e and convert_pt2e of torchao, by these recipes

FakeQuantize modules are compiled as they are, and PT2E's as converted. The accelerator's accuracy
is that of every test image on the simulator. Takes about three minutes on one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.ao import quantization
from torch.nn import functional as F
from torch_modules import SEED, quiet
from torch_quantized import RECIPES, convert_pt2e

import vdla

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from digits import load

with quiet():
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import prepare_qat_pt2e

CLASSES = 10
BATCH = 64
FLOAT_EPOCHS = 12
HEADS = ("way", "floats", "PyTorch", "accelerator", "other classes", "cycles", "on the host", "s")


class Digits(nn.Module):
    """Two convolutions with a residual one, between a quantizer and a dequantizer."""

    def __init__(self) -> None:
        super().__init__()
        self.quantizer, self.dequantizer = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv1, self.norm1, self.relu1 = (
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
        )
        self.conv2, self.norm2, self.relu2 = (
            nn.Conv2d(16, 32, 3, 2, 1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
        )
        self.conv3, self.norm3 = nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32)
        self.add, self.pool = nn.quantized.FloatFunctional(), nn.AdaptiveAvgPool2d(1)
        self.dense = nn.Linear(32, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu1(self.norm1(self.conv1(self.quantizer(x))))
        x = self.relu2(self.norm2(self.conv2(x)))
        x = self.add.add_relu(x, self.norm3(self.conv3(x)))
        return self.dequantizer(self.dense(torch.flatten(self.pool(x), 1)))


FUSED = [["conv1", "norm1", "relu1"], ["conv2", "norm2", "relu2"], ["conv3", "norm3"]]


@dataclass(frozen=True)
class Data:
    """Images, [images, 1, 8, 8], and their digits."""

    x: Tensor
    y: Tensor


def digits() -> tuple[Data, Data]:
    """Images to train on and to test on."""
    train_x, train_y, test_x, test_y = map(torch.from_numpy, load())
    return Data(train_x, train_y), Data(test_x, test_y)


def train(module: nn.Module, data: Data, epochs: int, rate: float) -> None:
    """Trains a module in place."""
    optimizer = torch.optim.Adam(module.parameters(), lr=rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(data.x)).split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(module(data.x[batch]), data.y[batch]).backward()
            optimizer.step()


def classes(module: Callable[[Tensor], Tensor], data: Data) -> np.ndarray:
    """The class of each image, one image at a time."""
    with torch.no_grad():
        return np.array([int(module(image[None]).argmax()) for image in data.x])


def trained_eager(
    floats: nn.Module, data: Data, epochs: int, *, backend: str, fused: bool = True
) -> nn.Module:
    """A module with FakeQuantize modules, in evaluation mode."""
    module = Digits()
    module.load_state_dict(floats.state_dict())
    module.train()
    if fused:
        module = quantization.fuse_modules_qat(module, FUSED)
    module.qconfig = quantization.get_default_qat_qconfig(backend)
    module = quantization.prepare_qat(module)
    train(module, data, epochs, 2e-3)
    return module.eval().apply(quantization.disable_observer)


def trained_pt2e(floats: nn.Module, data: Data, epochs: int, *, recipe: str) -> nn.Module:
    """A module that PT2E has converted."""
    dims = {"x": {0: torch.export.Dim("batch", min=2)}}
    floats.train()
    program = torch.export.export(floats, (data.x[:BATCH],), dynamic_shapes=dims)
    module = prepare_qat_pt2e(program.module(), RECIPES[recipe](True))
    train(module, data, epochs, 2e-3)
    module = convert_pt2e(module)
    return move_exported_model_to_eval(module)


WAYS: Mapping[str, Callable[[nn.Module, Data, int], nn.Module]] = {
    "x86": partial(trained_eager, backend="x86"),
    "qnnpack": partial(trained_eager, backend="qnnpack"),
    "x86, not fused": partial(trained_eager, backend="x86", fused=False),
    "qnnpack, not fused": partial(trained_eager, backend="qnnpack", fused=False),
    "XNNPACK": partial(trained_pt2e, recipe="XNNPACK"),
    "Inductor": partial(trained_pt2e, recipe="x86"),
}


@dataclass(frozen=True)
class Outcome:
    """Shares of test images that are classified rightly, and figures of the accelerator's run.

    ``other`` is how many images PyTorch and the accelerator classify differently.
    """

    floats: float
    pytorch: float
    accelerator: float
    other: int
    cycles: int
    host: int
    operators: int


def outcome(way: str, config: str, epochs: int) -> Outcome:
    """Trains a network in a way, and runs it on the accelerator."""
    torch.manual_seed(SEED)
    known, test = digits()
    floats = Digits()
    with quiet():
        train(floats, known, FLOAT_EPOCHS, 5e-3)
        by_floats = classes(floats.eval(), test)
        module = WAYS[way](floats, known, epochs)
    args = (test.x[:1],)
    net = vdla.compile(module, args, config=config)
    by_pytorch, by_accelerator = classes(module, test), classes(net, test)
    placed: list[Mapping[str, Any]] = net.module.metadata["placement"]
    truth = test.y.numpy()
    return Outcome(
        floats=float((by_floats == truth).mean()),
        pytorch=float((by_pytorch == truth).mean()),
        accelerator=float((by_accelerator == truth).mean()),
        other=int((by_pytorch != by_accelerator).sum()),
        cycles=net.run(*args).cycles,
        host=sum(row["device"] != "vdla" for row in placed),
        operators=len(placed),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ways", nargs="*", metavar="WAY", help=f"Of {'; '.join(WAYS)}.")
    parser.add_argument("-c", "--config", default="paper-full")
    parser.add_argument("--epochs", type=int, default=4, help="Of training for int8.")
    arguments = parser.parse_args()
    table = Table(*HEADS)
    for way in arguments.ways or WAYS:
        start = time.perf_counter()
        got = outcome(way, arguments.config, arguments.epochs)
        shares = (f"{100 * share:.1f} %" for share in (got.floats, got.pytorch, got.accelerator))
        table.add_row(
            way, *shares, str(got.other), f"{got.cycles:,}", f"{got.host} of {got.operators}",
            f"{time.perf_counter() - start:.0f}",
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
