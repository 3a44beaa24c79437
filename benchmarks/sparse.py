"""Block-sparse layers: cycles and bytes with the zero tiles, and without them.

    python benchmarks/sparse.py [-c CONFIG ...] [--layers 1024x1024,512x2048] [--shares 0.5,0.8,0.9]

A layer is ``INPUTSxOUTPUTS``, dense and of one image, or ``INPUTSxOUTPUTSxKERNELxSIZE``, a padded
convolution of an image of SIZE × SIZE pixels. A share of its tiles of weights is zero, at random
places. Each is compiled twice, and simulated: as it is, and with the sparsity ignored. Results are
equal bit for bit, or it stops.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import Array, Requant, TensorType
from vdla.compiler.targets.accelerator.operators import template
from vdla.isa.config import Config, load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

HEADS = ("layer", "config", "zero tiles", "cycles, all tiles", "cycles", "gain", "constants")


@dataclass(frozen=True)
class Measured:
    """A layer's run: its result, its cycles, and the bytes of its constants in DRAM."""

    output: Array
    cycles: int
    constants: int


def layer(sizes: list[int], share: float, config: Config) -> Graph:
    """A graph of a layer of which a share of the weight tiles is zero."""
    inputs, outputs, *rest = sizes
    kernel, size = rest or (1, 1)
    rng = np.random.default_rng(0)
    rows, columns = config.block_out, config.block_in
    shape = (outputs, inputs, kernel, kernel) if rest else (outputs, inputs)
    tiles = -(-outputs // rows), -(-inputs // columns), *shape[2:]
    kept = rng.permutation(int(np.prod(tiles))).reshape(tiles) >= share * np.prod(tiles)
    mask = kept.repeat(rows, 0).repeat(columns, 1)[:outputs, :inputs]
    weight = (rng.integers(-127, 128, shape) * mask).astype(np.int8)
    bias = rng.integers(-1000, 1000, outputs).astype(np.int32)
    node: ops.QDense | ops.QConv2d
    names = {"name": "layer", "output": "y", "data": "x", "weight": "w", "bias": "b"}
    requant = Requant((2.0**-12,) * outputs, 0)
    if rest:
        node = ops.QConv2d(**names, pads=(kernel // 2,) * 4, zeros=(0,), requant=requant)
    else:
        node = ops.QDense(**names, zeros=(0,), requant=requant)
    image = (size, size) if rest else ()
    tensors = {
        "x": TensorType((1, inputs, *image), "int8"), "y": TensorType((1, outputs, *image), "int8"),
        "w": TensorType(shape, "int8"), "b": TensorType(bias.shape, "int32"),
    }  # fmt: skip
    return Graph(("x",), ("y",), (node,), tensors, {"w": weight, "b": bias})


def measured(graph: Graph, config: Config) -> Measured:
    """A graph compiled and simulated."""
    module = compile_graph(graph, config, Options())
    rng = np.random.default_rng(1)
    inputs = {n: rng.integers(-128, 128, graph.tensors[n].shape, np.int8) for n in graph.inputs}
    result = Executor(module, SimDevice(config)).run(inputs)
    return Measured(result.outputs["y"], result.cycles, module.metadata["memory"]["constants"])


def with_all_tiles(graph: Graph, config: Config) -> Measured:
    """A graph measured with the sparsity ignored."""
    known = dict(template.INSTEAD)
    template.INSTEAD.clear()
    try:
        return measured(graph, config)
    finally:
        template.INSTEAD.update(known)


def main() -> None:
    """Prints a row for each layer, config and share."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--config", nargs="+", default=["paper", "paper-full"])
    parser.add_argument("--layers", default="1024x1024,512x2048")
    parser.add_argument("--shares", default="0.5,0.8,0.9")
    asked = parser.parse_args()
    table = Table(*HEADS)
    for name in asked.layers.split(","):
        for config in map(load_config, asked.config):
            for share in map(float, asked.shares.split(",")):
                graph = layer([int(n) for n in name.split("x")], share, config)
                whole, sparse = with_all_tiles(graph, config), measured(graph, config)
                np.testing.assert_array_equal(whole.output, sparse.output)
                table.add_row(
                    name,
                    config.name,
                    f"{100 * share:.0f} %",
                    f"{whole.cycles:,}",
                    f"{sparse.cycles:,}",
                    f"{whole.cycles / sparse.cycles:.2f}",
                    f"{whole.constants:,} → {sparse.constants:,}",
                )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
