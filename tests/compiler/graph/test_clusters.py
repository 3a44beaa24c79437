"""Clusters of float operators: softmax and normalizations become operators on integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.sequences import sequences_as_images
from vdla.isa.config import load_config
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

TINY = load_config("tiny", ["table_bytes=2048", "reciprocal_units=1"])
SHAPE = (1, 6, 16)  # vectors of features


def normalized(m: QdqModel, x: str, form: str) -> str:
    """A normalization of the last axis, with a factor and an offset for each element."""
    rng, rows = np.random.default_rng(3), (*SHAPE[:-1], 1)
    gamma = m.constant("gamma", rng.uniform(0.5, 1.5, SHAPE[-1]).astype(np.float32))
    beta = m.constant("beta", rng.normal(0, 0.2, SHAPE[-1]).astype(np.float32))
    epsilon = m.constant("epsilon", np.float32(1e-3).reshape(()))
    if form == "fused":
        return m.node("LayerNormalization", [x, gamma, beta], SHAPE, axis=-1, epsilon=1e-3)
    above = x
    if form != "rms":
        above = m.node("Sub", [x, m.node("ReduceMean", [x], rows, axes=[-1])], SHAPE)
    two = m.constant("two", np.float32(2).reshape(()))
    by_power = form == "power and quotient"
    square = m.node(*(("Pow", [above, two]) if by_power else ("Mul", [above, above])), SHAPE)
    mean = m.node("ReduceMean", [square], rows, axes=[-1])
    root = m.node("Sqrt", [m.node("Add", [mean, epsilon], rows)], rows)
    if form == "reciprocal":
        scaled = m.node("Mul", [above, m.node("Reciprocal", [root], rows)], SHAPE)
    else:
        scaled = m.node("Div", [above, root], SHAPE)
    times = m.node("Mul", [gamma, scaled], SHAPE)
    return times if form == "rms" else m.node("Add", [times, beta], SHAPE)


def layer(m: QdqModel, x: str) -> str:
    """A dense layer of each vector."""
    weight, scales = m.weight(f"{x}.weight", (SHAPE[-1], SHAPE[-1]), per_channel=False)
    y = m.node("MatMul", [x, weight], SHAPE)
    return m.quantized(y, float(np.float32(m.scales[x] * scales[0] * 250)))


def network(form: str) -> Any:
    """A dense layer, a normalization or a softmax of its vectors, and another dense layer."""
    m = QdqModel(7)
    x = layer(m, m.input("x", SHAPE))
    if form == "softmax":
        y = m.quantized(m.node("Softmax", [x], SHAPE, axis=-1), 1 / 256, -128)
    else:
        y = m.quantized(normalized(m, x, form), 0.03, 2)
    m.output(layer(m, y))
    return optimize(import_model(m.model()))


@pytest.mark.parametrize(
    ("form", "op"),
    [
        ("softmax", "QSoftmax"), ("fused", "QNormalize"), ("power and quotient", "QNormalize"),
        ("reciprocal", "QNormalize"), ("rms", "QNormalize"),
    ],
)  # fmt: skip
def test_a_cluster_is_one_operator(form, op):
    """Of integers: no float operator stays, and results are a step from those of floats."""
    graph, rng = network(form), np.random.default_rng(1)
    moved = sequences_as_images(graph, Capability(TINY))
    operators = [node.op for node in moved.nodes]
    assert operators.count(op) == 1
    assert operators.count("Quantize") == operators.count("Dequantize") == 1
    inputs = {"x": rng.normal(0, 1, SHAPE).astype(np.float32)}
    wanted, result = (evaluate(g, inputs)[graph.outputs[0]] for g in (graph, moved))
    assert np.abs(result - wanted).max() <= 0.05 * np.abs(wanted).max()
    module = compile_graph(graph, TINY, Options())
    (simulated,) = Executor(module, SimDevice(TINY)).run(inputs).outputs.values()
    np.testing.assert_array_equal(simulated, result)


def test_a_factor_that_is_no_number_stays_on_the_host():
    graph = network("fused")
    (gamma,) = (name for name in graph.constants if name.endswith("gamma"))
    graph.constants[gamma] = np.full_like(graph.constants[gamma], np.inf)
    assert "QNormalize" not in [
        node.op for node in sequences_as_images(graph, Capability(TINY)).nodes
    ]


def test_without_reciprocals_a_cluster_stays_on_the_host():
    graph, config = network("fused"), load_config("tiny", ["table_bytes=2048"])
    operators = [node.op for node in sequences_as_images(graph, Capability(config)).nodes]
    assert "QNormalize" not in operators
    assert "Reduce" in operators
