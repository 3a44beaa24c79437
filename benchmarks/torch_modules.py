"""PyTorch modules on the processor: against themselves, and against their own ONNX files.

    python benchmarks/torch_modules.py [NAME …]

compiles each by ``vdla.compile(module, arguments, device="cpu")`` and prints the seconds that takes
(torch.export and PyTorch's ONNX exporter included), the operators it becomes, the largest
difference from the module itself as a share of the largest value, and whether the outputs have the
bits of the other way: the module written by plain ``torch.onnx.export`` and run as a file. Weights
are random, from one seed. All take about four minutes on one core.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import torch_nets as nets
import torch_sequences as sequences
from rich.console import Console
from rich.table import Table
from torch import nn

import vdla
from vdla.api.functions import Compiled

SEED = 0
OPSET = 21
TOLERANCE = 1e-4
HEADS = ("module", "operators", "on the host", "seconds", "difference", "bits of the ONNX file")


@dataclass(frozen=True)
class Case:
    """A module and the arguments of a call; both are made anew each time, from one seed.

    ``others`` are further calls, of other sizes, where ``sizes`` are open.
    """

    make: Callable[[], nn.Module]
    args: Callable[[], tuple[Any, ...]]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    sizes: Any = None
    others: Sequence[Callable[[], tuple[Any, ...]]] = ()

    def module(self) -> nn.Module:
        """The module in evaluation mode; statistics of its normalizations aren't 0 and 1."""
        torch.manual_seed(SEED)
        module = self.make().eval()
        for each in module.modules():
            if isinstance(each, nn.modules.batchnorm._BatchNorm):
                each.running_mean.normal_(0, 0.1)
                each.running_var.uniform_(0.5, 1.5)
        return module

    def arguments(self, call: int = 0) -> tuple[Any, ...]:
        """Arguments of the first call, or of one of the others."""
        torch.manual_seed(SEED + 1 + call)
        return (self.args, *self.others)[call]()


def real(*shape: int) -> Callable[[], tuple[torch.Tensor]]:
    """One tensor of floats."""
    return lambda: (torch.randn(*shape),)


def tokens(*shape: int) -> Callable[[], tuple[torch.Tensor]]:
    """One tensor of int64."""
    return lambda: (torch.randint(sequences.VOCABULARY, shape),)


def both(*makers: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
    """Several arguments."""
    return lambda: tuple(value for maker in makers for value in maker())


IMAGE, LARGER, BATCH = real(1, 3, 32, 32), real(1, 3, 64, 64), real(2, 3, 32, 32)
ROWS = real(3, 8)
CASES: Mapping[str, Case] = {
    "ResNet, basic": Case(nets.resnet_basic, LARGER),
    "ResNet, bottleneck": Case(nets.resnet_bottleneck, IMAGE),
    "RegNet, ResNeXt": Case(nets.regnet, IMAGE),
    "MobileNetV2": Case(nets.mobilenet_v2, IMAGE),
    "MobileNetV3": Case(nets.mobilenet_v3, BATCH),
    "EfficientNet": Case(nets.efficientnet, IMAGE),
    "DenseNet": Case(nets.densenet, IMAGE),
    "Inception": Case(nets.inception, IMAGE),
    "ShuffleNet": Case(nets.shufflenet, IMAGE),
    "VGG": Case(nets.vgg, real(1, 3, 58, 58)),
    "ConvNeXt": Case(nets.convnext, IMAGE),
    "MLP-Mixer": Case(nets.MixerNet, IMAGE),
    "detector": Case(nets.Pyramid, BATCH),
    "U-Net": Case(nets.UNet, IMAGE),
    "GAN's generator": Case(nets.generator, real(2, 16)),
    "super-resolution": Case(nets.SuperResolution, real(1, 3, 24, 20)),
    "3D convolutions": Case(nets.video, real(1, 3, 8, 32, 32)),
    "ViT, MultiheadAttention": Case(partial(sequences.Vit, sequences.Encoder), IMAGE),
    "ViT, fused attention": Case(partial(sequences.Vit, sequences.Fused), IMAGE),
    "Swin": Case(sequences.Swin, BATCH),
    "LSTM": Case(partial(sequences.Recurrent, nn.LSTM, 2, True), real(2, 9, 12)),
    "GRU with states": Case(sequences.Tagger, both(real(7, 2, 12), real(2, 2, 16))),
    "RNN": Case(partial(sequences.Recurrent, nn.RNN, 1, False), real(2, 9, 12)),
    "decoder": Case(sequences.Decoder, both(tokens(2, 10), real(2, 6, 32))),
    "GPT": Case(sequences.Gpt, tokens(1, 12)),
    "temporal convolutions": Case(sequences.Temporal, real(2, 8, 30)),
    "named tuple": Case(sequences.Named, ROWS),
    "dataclass": Case(sequences.Held, ROWS),
    "absent arguments": Case(sequences.Optional, ROWS),
    "other arguments": Case(
        sequences.Optional,
        lambda: (torch.randn(3, 8), torch.rand(3, 8) > 0.5),
        {"scale": 0.5, "both": True, "bias": torch.ones(8)},
    ),
    "nested arguments": Case(
        sequences.Nested,
        lambda: (
            (torch.randn(3, 8), (torch.randn(3, 6), torch.randn(3, 2))),
            {"by": torch.randn(3, 2)},
        ),
    ),
    "open height": Case(
        nets.UNet, IMAGE,
        sizes={"x": {0: "batch", 2: torch.export.Dim("quarter") * 4}},
        others=[real(2, 3, 16, 32), real(1, 3, 24, 32)],
    ),
    "open batch": Case(nets.mobilenet_v3, BATCH, sizes={"input": {0: "batch"}}, others=[IMAGE]),
    "open length": Case(
        sequences.Gpt, tokens(2, 12), sizes={"tokens": {0: "batch", 1: "length"}},
        others=[tokens(1, 5), tokens(2, 16)],
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Figures of a module.

    Attributes:
        operators: those of the compiled graph.
        host: how many of them onnxruntime runs.
        seconds: of the compilation.
        difference: from the module itself, the largest of all calls, as a share of the largest
            value.
        same: whether all bits are those of the ONNX file's way.
    """

    operators: int
    host: int
    seconds: float
    difference: float
    same: bool


def outcome(case: Case) -> Outcome:
    """Compiles a module, and runs it and its ONNX file."""
    module, kwargs = case.module(), dict(case.kwargs)
    start = time.perf_counter()
    net = vdla.compile(module, case.arguments(), kwargs, sizes=case.sizes, device="cpu")
    seconds = time.perf_counter() - start
    calls = [case.arguments(call) for call in range(1 + len(case.others))]
    with torch.no_grad():
        difference = max(net.check(*args, **kwargs).relative for args in calls)
    placed = net.module.metadata["placement"]
    return Outcome(
        operators=len(placed),
        host=sum(row["op"] == "External" for row in placed),
        seconds=seconds,
        difference=difference,
        same=all(same_bits(case, net, args, kwargs) for args in calls),
    )


def same_bits(case: Case, net: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call has the outputs that PyTorch's own ONNX file of these sizes has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.onnx"
        with quiet():
            torch.onnx.export(
                case.module(), (*args, kwargs), path, dynamo=True, opset_version=OPSET,
                verbose=False,
            )  # fmt: skip
        given = net.captured.arrays(args, kwargs)
        names = [value.name for value in onnx.load(path).graph.input]
        inputs = dict(zip(names, given.values(), strict=True))
        plain = list(vdla.run(path, inputs, device="cpu").outputs.values())
    own = list(net.run(*args, **kwargs).outputs.values())
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(own, plain, strict=True))


@contextmanager
def quiet() -> Iterator[None]:
    """Without PyTorch's warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="All, unless some are given.")
    names = parser.parse_args().names or list(CASES)
    table = Table(*HEADS)
    for name in names:
        got = outcome(CASES[name])
        share, bits = f"{got.difference:.0e}", "same" if got.same else "other"
        table.add_row(name, *map(str, (got.operators, got.host, f"{got.seconds:.1f}", share, bits)))
    Console().print(table)


if __name__ == "__main__":
    main()
