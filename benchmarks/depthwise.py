"""Multiply-adds a cycle of depthwise convolutions whose images are on chip, by window.

    python benchmarks/depthwise.py [-c CONFIG] [--kernel 3]

Each row is a depthwise convolution between two 1x1 convolutions, compiled as one operator, so that
what it reads and what it writes stay on chip. Its cycles are those in which GEMM works on it: its
micro-ops, of which some at the start of each row fill the window. Edges count as multiply-adds, as
everywhere. Without a window the rate is that of the array's diagonal: 16.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import vdla
from vdla.compiler.graph.window import Window
from vdla.compiler.models.builder import Builder
from vdla.compiler.models.quantizer import quantize_model
from vdla.isa.config import Config, load_config
from vdla.isa.instructions import Gemm
from vdla.isa.program import Program
from vdla.sim.machine import simulate

WINDOWS = {"a row": ("window_rows=1",), "two rows": ("window_rows=2",)}
LAYERS = ((64, 56, 1), (128, 56, 2), (256, 28, 1), (512, 14, 1), (1024, 7, 1))  # MobileNet v1's


def chain(channels: int, side: int, stride: int, kernel: int, path: Path) -> int:
    """Writes the model; returns the depthwise convolution's multiply-adds."""
    image = np.random.default_rng(7).normal(size=(1, 32, side, side)).astype(np.float32)
    b = Builder("chain", 7, image)
    x = b.relu(b.conv("expand", "input", channels, Window.square(1)))
    x = b.relu(b.conv("filter", x, channels, Window.square(kernel, stride), groups=channels))
    quantize_model(b.model(b.conv("project", x, 32, Window.square(1))), path, [{"input": image}])
    return channels * (side // stride) ** 2 * kernel**2


def window_cycles(path: Path, config: Config) -> int:
    """Cycles in which GEMM works on what a window sees."""
    module = vdla.compile(path, config)
    cycles = 0
    for raw in module.programs.values():
        program = Program.from_bytes(raw, config)
        dram = np.zeros(module.dram_bytes, np.uint8)
        run = simulate(config, program.instructions, dram, program.base, numerics=False)
        cycles += sum(i.steps() for i in run.instructions if isinstance(i, Gemm) and i.window)
    return cycles


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-c", "--config", default="paper-ring")
    parser.add_argument("--kernel", type=int, default=3)
    arguments = parser.parse_args()
    config = load_config(arguments.config)
    table = Table("layer", *WINDOWS, title=f"depthwise multiply-adds a cycle on {config.name}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.onnx"
        for channels, side, stride in LAYERS:
            macs = chain(channels, side, stride, arguments.kernel, path)
            rates = (macs / window_cycles(path, config.override(s)) for s in WINDOWS.values())
            name = f"{channels} channels, {side}×{side}" + (f" by {stride}" if stride > 1 else "")
            table.add_row(name, *(f"{rate:.1f}" for rate in rates))
    Console(width=90).print(table)


if __name__ == "__main__":
    main()
