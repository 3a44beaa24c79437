"""Fine-tunes the last block of ``patches`` on an accelerator, where its images are turned.

    python training/last_block.py [-c CONFIG] [--epochs N] [--host PROCESSOR]

The bundled network reads upright digits. A camera that is mounted on its side shows them turned by
90 degrees, of which it knows few. The first block stays as it is, in int8 on the accelerator; the
second one, the last normalization and the head are trained on turned images: products in int8, of
gradients in 16 bits as two bytes, on the accelerator, and what is between them on the host. The
same training in floats is beside it. Prints the scores on turned test images, cycles an image and
images a second at the config's clock, by the accelerator alone and with the host's time by a
model.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import digits
import numpy as np
import onnx
import patches
from descent import compiled, cross_entropy, descend, falling
from onnx import numpy_helper
from rich.console import Console
from rich.table import Table

import vdla
from vdla.compiler.build import Options, compile_graph, compile_model, import_graph
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.types import Array
from vdla.compiler.host_time import host_time
from vdla.compiler.models.noise import spread
from vdla.compiler.targets.processor.timing.machine import NAMES, machine_of
from vdla.isa.config import Config, load_config
from vdla.names.models import model_file
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor

FRONT = "block0.add2_DequantizeLinear_Output"  # what the last block reads
TRAINED = ("block1.", "norm.", "head.")
SEEDS, BATCH, EPOCHS, RATE, DECAY = (1, 2, 3), 32, 20, 2e-3, 0.01
Params = dict[str, Array]


@dataclass(frozen=True)
class Cost:
    """Cycles of the accelerator and seconds of the host for some images."""

    cycles: int
    host: float
    images: int

    def per_image(self, config: Config) -> tuple[float, float, float]:
        """Cycles; seconds of the accelerator at the config's clock; seconds of the host."""
        cycles = self.cycles / self.images
        return cycles, cycles / (config.clock_mhz * 1e6), self.host / self.images


# The network -------------------------------------------------------------------------------------


def front(model: onnx.ModelProto, folder: Path) -> Path:
    """The file of the part before the last block."""
    typed = onnx.shape_inference.infer_shapes(model)
    part = onnx.utils.Extractor(typed).extract_model(["input"], [FRONT])
    onnx.save(part, folder / "front.onnx")
    return folder / "front.onnx"


def weights(model: onnx.ModelProto) -> Params:
    """The floats that the weights behind the front stand for."""
    arrays = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    result = {name: a for name, a in arrays.items() if a.dtype == np.float32}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in arrays:
            steps, scale, zero = (arrays[name] for name in node.input)
            scale, zero = (
                spread(node, each.astype(np.float32), steps.shape) for each in (scale, zero)
            )
            name = node.output[0].removesuffix("_DequantizeLinear_Output")
            result[name] = (steps.astype(np.float32) - zero) * scale
    return {n: a for n, a in result.items() if n.startswith(TRAINED) and patches.is_trained(n)}


def logits(p: Params, features: Array, product: patches.Product) -> Array:
    """The network's result [N, 10] for what the front gives, [N, 17, 32]."""
    return patches.ending(p, patches.block(p, "block1", features, product), product)


def loss(p: Params, features: Array, labels: Array, product: patches.Product) -> Array:
    """Cross-entropy in nats."""
    return cross_entropy(logits(p, features, product), labels)


# Training ----------------------------------------------------------------------------------------


def batches(
    features: Array, labels: Array, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    """Features and labels of one step after another, each image once an epoch."""
    while True:
        order = rng.permutation(len(features))
        for start in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[start : start + BATCH]
            yield features[chosen], labels[chosen]


def adam() -> vdla.optim.Optimizer:
    """The rule of descent."""
    return vdla.optim.Adam(decay=DECAY)


def tuned(
    params: Params, data: tuple[Array, Array], product: patches.Product, seed: int, epochs: int
) -> Params:
    """Weights after some epochs of batches in the order of a seed.

    It runs on this machine: integers are the accelerator's, bit for bit.
    """
    features, labels = data
    step = compiled(partial(loss, product=product), adam())
    rates = falling(RATE, epochs * (len(labels) // BATCH), 10)
    rng = np.random.default_rng(seed)
    return descend(step, adam(), params, batches(features, labels, rng), rates)[0]


def score(p: Params, features: Array, labels: Array, product: patches.Product) -> float:
    """The share of images that are classified rightly, in percent."""
    scores = vdla.fn(partial(logits, product=product))(p, features)
    return 100 * float((np.asarray(scores).argmax(axis=1) == labels).mean())


# Costs -------------------------------------------------------------------------------------------


def seconds_of_host(graph: Graph, config: Config, processor: str) -> float:
    """The host's time beside the accelerator, by a model of its processor."""
    options = Options(processor=machine_of(processor).processor)
    return host_time(graph, config, options).milliseconds / 1000


def cost_of_front(path: Path, config: Config, processor: str) -> Cost:
    """Cost of one image."""
    module = compile_model(path, config)
    image = np.zeros((1, 1, 8, 8), np.float32)
    cycles = Executor(module, make_device(module, "sim")).run({"input": image}).cycles or 0
    return Cost(cycles, seconds_of_host(import_graph(path), config, processor), 1)


def cost_of_step(params: Params, config: Config, processor: str) -> Cost:
    """Cost of a step: forward, backward and update. Cycles don't depend on numbers."""
    function = compiled(partial(loss, product=vdla.dynamic_matmul), adam())
    batch = np.zeros((BATCH, 17, 32), np.float32), np.zeros(BATCH, np.int64)
    examples = params, adam().start(params), batch, np.float32(RATE)
    graph = function.graph(*examples)
    module = compile_graph(graph, config)
    inputs = {n: np.zeros(graph.tensors[n].shape, graph.tensors[n].dtype) for n in graph.inputs}
    cycles = Executor(module, make_device(module, "sim")).run(inputs).cycles or 0
    return Cost(cycles, seconds_of_host(graph, config, processor), BATCH)


# The command -------------------------------------------------------------------------------------


def features_of(path: Path, images: Array, config: Config) -> Array:
    """Results of the front for images, [N, 17, 32], by the accelerator's simulator."""
    module = compile_model(path, config)
    executor = Executor(module, make_device(module, "sim"))
    (name,) = module.outputs
    return np.concatenate([executor.run({"input": each[None]}).outputs[name] for each in images])


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, and prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-c", "--config", default="paper-full")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--host", default="cortex-a9", choices=NAMES)
    asked = parser.parse_args(arguments)
    config, model = load_config(asked.config), onnx.load(model_file("patches"))
    images, labels, tests, wanted = digits.load()
    start = weights(model)
    with TemporaryDirectory() as folder:
        path = front(model, Path(folder))
        known, unknown = (
            features_of(path, np.rot90(each, axes=(2, 3)).copy(), config)
            for each in (images, tests)
        )
        costs = {"first block, forward": cost_of_front(path, config, asked.host)}
    costs["last block, a step"] = cost_of_step(start, config, asked.host)
    scores = Table("training", *(f"seed {seed}" for seed in SEEDS), "mean")
    before = score(start, unknown, wanted, np.matmul)
    scores.add_row("none", *[""] * len(SEEDS), f"{before:.2f} %")
    for name, product in {"floats": np.matmul, "int8, int16": vdla.dynamic_matmul}.items():
        results = [
            score(
                tuned(start, (known, labels), product, seed, asked.epochs), unknown, wanted, product
            )
            for seed in SEEDS
        ]
        scores.add_row(name, *(f"{each:.2f} %" for each in results), f"{np.mean(results):.2f} %")
    console = Console()
    console.print(scores)
    console.print(_speeds(costs, config, asked.host))


def _speeds(costs: dict[str, Cost], config: Config, processor: str) -> Table:
    """Costs of an image, and images a second."""
    table = Table(
        "part", "cycles an image", f"accelerator, ms {config.at_clock}", f"host ({processor}), ms"
    )
    total, host = 0.0, 0.0
    for name, cost in costs.items():
        cycles, seconds, own = cost.per_image(config)
        total, host = total + seconds, host + own
        table.add_row(name, f"{cycles:,.0f}", f"{seconds * 1e3:.3f}", f"{own * 1e3:.3f}")
    table.add_section()
    table.add_row("images a second", "", f"{1 / total:,.0f}", f"both: {1 / (total + host):,.0f}")
    return table


if __name__ == "__main__":
    main()
