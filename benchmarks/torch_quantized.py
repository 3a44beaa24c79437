"""Quantized PyTorch modules on the accelerator: against themselves, and their own ONNX files.

    python benchmarks/torch_quantized.py [-c CONFIG] [NAME …]

quantizes networks of ``torch_modules.py`` by PT2E (torchao), with the recipe of XNNPACK, per
channel, and that of Inductor on x86, on a few random images; compiles each by
``vdla.compile(module, arguments, config=CONFIG)`` and runs it on the simulator. The table has the
cycles, operators that stay on the host of all, the difference from PyTorch's own result in steps of
its last quantizer (or of 1/255 of its range) and in dB, and whether the outputs have the bits of
the ONNX file that plain ``torch.onnx.export`` writes. Below it stand the reasons that the host has
operators for, with how many. Takes about two minutes on one core.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch_modules import CASES, OPSET, SEED, quiet

import vdla
from vdla.api.functions import Compiled

logging.disable(logging.WARNING)  # torchao's, of libraries for GPUs
with quiet():
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    from torchao.testing.pt2e import _xnnpack_quantizer as xnnpack

NAMES = ("ResNet, basic", "MobileNetV2", "MobileNetV3", "Inception", "ShuffleNet", "U-Net")
HEADS = ("module", "recipe", "cycles", "on the host", "steps", "dB", "bits of the ONNX file")
BATCHES = 4  # of calibration


def xnnpack_quantizer(training: bool = False) -> Any:
    """XNNPACK's recipe: int8, weights per channel, results of all operators it knows."""
    quantizer = xnnpack.XNNPACKQuantizer()
    return quantizer.set_global(
        xnnpack.get_symmetric_quantization_config(is_per_channel=True, is_qat=training)
    )


def x86_quantizer(training: bool = False) -> Any:
    """Inductor's recipe for x86: uint8 by int8, results only where a quantized operator reads."""
    quantizer = x86.X86InductorQuantizer()
    return quantizer.set_global(x86.get_default_x86_inductor_quantization_config(is_qat=training))


RECIPES: Mapping[str, Callable[[bool], Any]] = {
    "XNNPACK": xnnpack_quantizer,
    "x86": x86_quantizer,
}


def quantized(module: nn.Module, args: tuple[Any, ...], recipe: str) -> nn.Module:
    """A module quantized by a recipe, calibrated on random arguments like those given."""
    with quiet(), torch.no_grad():
        prepared = prepare_pt2e(torch.export.export(module, args).module(), RECIPES[recipe](False))
        torch.manual_seed(SEED)
        for _ in range(BATCHES):
            prepared(*map(torch.randn_like, args))
        prepared(*args)
        return convert_pt2e(prepared)


@dataclass(frozen=True)
class Outcome:
    """Figures of a quantized module.

    Attributes:
        cycles: of the accelerator.
        host: reason of each operator that stays on the host.
        operators: all of them.
        steps: largest difference from PyTorch's result.
        decibels: signal to noise.
        same: whether all bits are those of the ONNX file's way.
    """

    cycles: int
    host: Sequence[str]
    operators: int
    steps: float
    decibels: float
    same: bool


def outcome(name: str, recipe: str, config: str) -> Outcome:
    """Quantizes and compiles a module, and runs it and its ONNX file."""
    case = CASES[name]
    args = case.arguments()
    module = quantized(case.module(), args, recipe)
    net = vdla.compile(module, args, config=config)
    run = net.run(*args)
    placed = net.module.metadata["placement"]
    own = list(run.outputs.values())
    with torch.no_grad():
        agreement = net.check(*args)
        expected = net.captured.leaves(module(*args))
    return Outcome(
        cycles=run.cycles,
        host=[f"{row['op']}: {row['reason']}" for row in placed if row["device"] != "vdla"],
        operators=len(placed),
        steps=max(map(steps_apart, own, expected)),
        decibels=agreement.decibels,
        same=all(map(np.array_equal, own, outputs_of_file(module, net, args, config))),
    )


def steps_apart(result: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference, in steps of the expected values: the least that lies between two."""
    gaps = np.diff(np.unique(expected))
    step = max(gaps.min(initial=np.inf), (expected.max() - expected.min()) / 255)
    return float(np.abs(result - expected).max() / step)


def outputs_of_file(
    module: nn.Module, net: Compiled, args: tuple[Any, ...], config: str
) -> list[np.ndarray]:
    """Outputs of the file that plain ``torch.onnx.export`` writes of a module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.onnx"
        with quiet():
            torch.onnx.export(module, args, path, dynamo=True, opset_version=OPSET, verbose=False)
        names = [value.name for value in onnx.load(path).graph.input]
        inputs = dict(zip(names, net.captured.arrays(args, {}).values(), strict=True))
        return list(vdla.run(path, inputs, config=config).outputs.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"Default: {'; '.join(NAMES)}.")
    parser.add_argument("-c", "--config", default="paper-full")
    arguments = parser.parse_args()
    table, reasons = Table(*HEADS), []
    for name in arguments.names or NAMES:
        for recipe in RECIPES:
            got = outcome(name, recipe, arguments.config)
            table.add_row(
                name, recipe, f"{got.cycles:,}", f"{len(got.host)} of {got.operators}",
                f"{got.steps:.1f}", f"{got.decibels:.0f}", "same" if got.same else "other",
            )  # fmt: skip
            counts = Counter(got.host).most_common()
            reasons += [f"{name}, {recipe}: {count} {reason}" for reason, count in counts]
    Console().print(table)
    print(*reasons, sep="\n")


if __name__ == "__main__":
    main()
