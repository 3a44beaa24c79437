"""How a model's numbers compare with onnxruntime's, layer by layer and as a whole.

Every layer gets onnxruntime's own input tensors and runs where the compiler placed it: on the
simulated accelerator, or as native code on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vdla.api import executor
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.graph.compare import (
    LayerDifference,
    cosine,
    isolate,
    layer_differences,
    ort_run,
    ort_tensors,
)
from vdla.compiler.graph.ir import Graph, Node
from vdla.compiler.graph.passes import optimize
from vdla.isa.config import Config
from vdla.runtime.executor import Executor
from vdla.runtime.module import Module

Array = NDArray[Any]


@dataclass(frozen=True)
class Agreement:
    """One input's logits against the reference's."""

    cosine: float
    same_top1: bool
    tie: bool  # the reference's two best are equal


def per_layer(
    path: Path,
    inputs: Mapping[str, Array],
    config: Config,
    device: str = "sim",
    shapes: Shapes | None = None,
) -> list[LayerDifference]:
    """The difference of every integer layer, each fed onnxruntime's tensors."""
    graph = optimize(import_onnx(path, shapes))

    def evaluate(graph: Graph, node: Node, operands: Sequence[Array]) -> Array:
        alone = isolate(graph, node)
        values = dict(zip(node.inputs, operands, strict=True))
        options = Options(device="cpu" if device == "cpu" else "vdla")
        module = compile_graph(alone, config, options)
        result = executor(module, device).run({name: values[name] for name in alone.inputs})
        return result.outputs[node.output]

    return layer_differences(graph, ort_tensors(path, inputs), evaluate)


def whole(
    path: Path, ready: Executor, module: Module, samples: Sequence[Mapping[str, Array]]
) -> list[Agreement]:
    """Cosine and best class of the first output, per sample."""
    found = []
    for inputs in samples:
        output = module.outputs[0]
        got = ready.run(inputs).outputs[output].ravel()
        want = ort_run(path, inputs)[output].ravel()
        best = np.sort(want)[-2:]
        same = bool(got.argmax() == want.argmax())
        found.append(Agreement(cosine(got, want), same, bool(best[0] == best[-1])))
    return found
