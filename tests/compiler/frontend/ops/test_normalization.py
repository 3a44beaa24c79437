"""Operators that normalize."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_operators import F, agrees, check_operator, model, real, typed
from quantized_models import QUANT, RNG, W, quantized_input, same_results, single
from quantized_models import model as quantized_model

from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate


@pytest.mark.parametrize(("op", "operands", "constants", "attributes"), [
    ("LogSoftmax", "x", {}, {"axis": 1}),
    ("InstanceNormalization", "xgg", {}, {}),
    ("LpNormalization", "x", {}, {"axis": 1, "p": 1}),
    ("LayerNormalization", "xab", {"a": np.full(4, 2, F), "b": np.ones(4, F)}, {"epsilon": 0.01}),
])  # fmt: skip
def test_operators(op, operands, constants, attributes):
    check_operator(op, operands, constants, attributes)


@pytest.mark.parametrize("beta", [0.25, 0.5, 0.75, 1.0, 0.6])
@pytest.mark.parametrize("size", [3, 5])
def test_channels_by_their_neighbours(size, beta):
    """An image's squares are summed by a convolution, and roots are the usual powers."""
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.3, beta=beta, bias=1.5)
    graph = agrees([node], {"x": 3 * real(2, 7, 5, 4)})
    assert any(isinstance(node, ops.Conv2d) for node in graph.nodes)
    powers = [node.function for node in graph.nodes if isinstance(node, ops.Binary)]
    assert ("pow" in powers) == (beta == 0.6)


@pytest.mark.parametrize("size", [3, 4])
def test_channels_of_a_signal_by_their_neighbours(size):
    """Which onnxruntime doesn't run, nor even sizes."""
    x = real(2, 7, 5)
    node = helper.make_node("LRN", ["x"], ["y"], size=size, alpha=0.3)
    graph = import_model(typed(model([node], {"x": x})), "m")
    first = (size - 1) // 2
    squares = np.pad(x**2, ((0, 0), (first, size - 1 - first), (0, 0)))
    sums = sum(squares[:, n : n + 7] for n in range(size))
    want = x / (1 + 0.3 / size * sums) ** 0.75
    np.testing.assert_allclose(evaluate(graph, {"x": x})["y"], want, rtol=1e-5)


@pytest.mark.parametrize(("op", "extra", "constants", "attributes", "shape"), [
    ("Softmax", [], {}, {"axis": 1}, (1, 4, 6, 7)),
    ("Softmax", [], {}, {}, (1, 4, 6, 7)),
])  # fmt: skip
def test_behind_a_quantized_input(op, extra, constants, attributes, shape):
    constants = {k: np.asarray(v) for k, v in constants.items()}
    same_results(single(op, shape, extra=extra, constants=constants, **attributes))


def test_batch_normalization():
    stats = {k: RNG.uniform(0.5, 2, 4).astype(np.float32) for k in "gbmv"}
    same_results(single("BatchNormalization", (1, 4, 6, 7), extra=list("gbmv"), constants=stats))


def test_batch_normalization_with_quantized_statistics():
    stats = {k: RNG.integers(1, 100, 4).astype(np.int8) for k in "gbmv"}
    nodes = quantized_input()
    for k in stats:
        nodes.append(helper.make_node("DequantizeLinear", [k, "s"], [f"{k}f"]))
    nodes.append(helper.make_node("BatchNormalization", ["xq", *(f"{k}f" for k in stats)], ["y"]))
    same_results(
        quantized_model(nodes, {"x": (1, 4, 6, 7)}, {"y": (1, 4, 6, 7)}, {**QUANT, **stats})
    )


def test_batch_normalization_folds_into_a_float_convolution():
    stats = {k: RNG.uniform(0.5, 2, 6).astype(np.float32) for k in "gbmv"}
    nodes = [
        *quantized_input(),
        helper.make_node("Conv", ["xq", "w"], ["c"], name="conv"),
        helper.make_node("BatchNormalization", ["c", *"gbmv"], ["y"], name="bn"),
    ]
    proto = quantized_model(
        nodes, {"x": (1, 4, 6, 7)}, {"y": (1, 6, 4, 6)}, {**QUANT, **stats, "w": W}
    )
    same_results(proto, atol=1e-4)
    assert [n.op for n in optimize(import_model(proto)).nodes][-1] == "Conv2d"


def test_batch_normalization_stays_where_the_convolution_is_read_twice():
    stats = {k: RNG.uniform(0.5, 2, 6).astype(np.float32) for k in "gbmv"}
    nodes = [
        *quantized_input(),
        helper.make_node("Conv", ["xq", "w"], ["c"], name="conv"),
        helper.make_node("BatchNormalization", ["c", *"gbmv"], ["n"], name="bn"),
        helper.make_node("Add", ["c", "n"], ["y"], name="both"),
    ]
    proto = quantized_model(
        nodes, {"x": (1, 4, 6, 7)}, {"y": (1, 6, 4, 6)}, {**QUANT, **stats, "w": W}
    )
    same_results(proto, atol=1e-4)
    assert "BatchNorm" in [n.op for n in optimize(import_model(proto)).nodes]
