"""Dense layers behind a flatten: which of them read the image as it is."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.flatten import read_images
from vdla.isa.config import load_config
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

PAPER = load_config("paper")


def network(channels, size, before=True):
    """A convolution, or the caller's image, and a dense layer behind a flatten."""
    m = QdqModel(4)
    x = m.input("x", (2, channels, size, size))
    y = m.conv(x, channels, 1) if before else x
    flat = m.node("Flatten", [y], (2, channels * size * size), axis=1)
    m.scales[flat] = m.scales[y]
    m.output(m.dense(flat, 10))
    return optimize(import_model(m.model()))


def kinds(graph):
    return [node.op for node in graph.nodes if node.op not in ("Quantize", "Dequantize")]


@pytest.mark.parametrize("config", ["paper", "tiny"])
@pytest.mark.parametrize(("channels", "size"), [(16, 3), (40, 4), (24, 2)])
def test_images_of_the_accelerator_are_read_as_they_are(channels, size, config):
    graph, config = network(channels, size), load_config(config)
    changed = read_images(graph, Capability(config))
    assert changed.nodes[-2].op == "QDense"
    assert len(changed.tensors[changed.nodes[-2].data].shape) == 4
    module = compile_graph(graph, config, Options())
    assert "QReshape" not in {row["op"] for row in module.metadata["placement"]}
    x = np.random.default_rng(0).normal(0, 2, graph.tensors["x"].shape).astype(np.float32)
    want = evaluate(graph, {"x": x})[graph.outputs[0]]
    (result,) = Executor(module, SimDevice(config)).run({"x": x}).outputs.values()
    np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize(
    ("channels", "size", "before"),
    [(16, 3, False), (4, 3, True), (16, 13, True)],
    ids=["of the caller", "few channels", "more taps than weights fit"],
)
def test_other_images_are_flattened(channels, size, before):
    graph = network(channels, size, before)
    assert kinds(read_images(graph, Capability(PAPER))) == kinds(graph)
