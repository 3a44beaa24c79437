"""Weights in floats between integers: which are rounded, and by how much results change."""

from __future__ import annotations

import numpy as np
import pytest
from qdq import QdqModel

from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.round_weights import round_weights
from vdla.compiler.graph.reference import evaluate


def floats(m, *shape, name="w"):
    return m.constant(name, (m.rng.normal(size=shape) * 0.1).astype(np.float32))


def up(m, x, step=0.002):
    """A transposed convolution whose weights are floats, and its quantization."""
    n, c, h, w = m.shapes[x]
    y = m.node("ConvTranspose", [x, floats(m, c, 3, 2, 2)], (n, 3, 2 * h, 2 * w), strides=[2, 2])
    return m.quantized(m.node("Relu", [y], m.shapes[y]), step)


def dense(m, x, name="dense"):
    """A Gemm whose weights are floats, and its quantization."""
    weight = floats(m, 5, m.shapes[x][1], name=name)
    y = m.node("Gemm", [x, weight], (m.shapes[x][0], 5), transB=1)
    return m.quantized(y, 0.02)


def rounded(m):
    """The graph before and after, and the largest difference of a result in its steps."""
    graph = import_model(m.model())
    result = verify(round_weights(graph))
    rng = np.random.default_rng(1)
    inputs = {n: rng.normal(size=graph.tensors[n].shape).astype(np.float32) for n in graph.inputs}
    wanted, found = evaluate(graph, inputs), evaluate(result, inputs)
    return graph, result, [np.abs(wanted[n] - found[n]).max() for n in graph.outputs]


@pytest.mark.parametrize("others", [False, True])
def test_a_transposed_convolution(others):
    """Others' weights are of int8, but none of a transposed convolution's."""
    m = QdqModel(2)
    x = m.input("x", (1, 4, 5, 5), 0.03)
    m.output(up(m, m.conv(x, 4, 1) if others else x))
    graph, result, (difference,) = rounded(m)
    assert not any(node.weight in result.constants for node in result.of(ops.Conv2d))
    least = min(float(np.abs(graph.constants[n.weight]).max()) for n in graph.of(ops.Conv2d)[-4:])
    assert 0 < difference <= 4 * 128 * 0.06 * least / 127 + 0.002
    assert len(optimize(result).of(ops.QConv2d)) == 4 + others


def test_a_dense_layer_by_channel():
    """Weights of an output channel lose no more than half a step of its own largest one."""
    m = QdqModel(2)
    m.output(dense(m, m.input("x", (3, 7), 0.03)))
    graph, result, (difference,) = rounded(m)
    (before,), (after,) = graph.of(ops.Dense), result.of(ops.Dense)
    weight = graph.constants[before.weight]
    source = next(n for n in result.of(ops.Dequantize) if n.output == after.weight)
    real = source.evaluate([result.constants[source.data]], result.tensors[after.weight])
    half = np.abs(weight).max(axis=1, keepdims=True) / 254
    assert (np.abs(real - weight) <= half * 1.0001).all()
    assert np.abs(real - weight).max() > 0
    assert difference <= 0.04
    assert optimize(result).of(ops.QDense)


def test_a_layer_of_a_kind_that_is_quantized_elsewhere_stays():
    m = QdqModel(2)
    m.output(dense(m, m.dense(m.input("x", (3, 7)), 6)))
    graph, result, _ = rounded(m)
    assert result is graph


def test_the_others_of_a_file_are_rounded():
    """A Gemm of floats beside one of int8 stays, and transposed convolutions are rounded."""
    m = QdqModel(2)
    m.output(dense(m, m.dense(m.input("x", (3, 7)), 6)))
    m.output(up(m, m.input("z", (1, 4, 5, 5), 0.03)))
    _, result, _ = rounded(m)
    assert [node.weight in result.constants for node in result.of(ops.Dense)] == [False, True]
    assert not any(node.weight in result.constants for node in result.of(ops.Conv2d))


@pytest.mark.parametrize("end", ["input", "output"])
def test_a_layer_beside_floats_stays(end):
    m = QdqModel(2)
    x = m.input("x", (3, 7), 0.03)
    if end == "input":
        x = m.node("Softmax", [x], (3, 7))
    y = m.node("Gemm", [x, floats(m, 5, 7)], (3, 5), transB=1)
    if end == "output":
        m.output(m.node("Exp", [y], (3, 5)))
    m.output(m.quantized(y, 0.02))
    graph, result, _ = rounded(m)
    assert result is graph


def test_weights_of_nothing_and_of_no_number():
    m = QdqModel(2)
    x = m.input("x", (3, 7), 0.03)
    for name, value in (("zero", 0.0), ("infinite", np.inf)):
        weight = m.constant(name, np.full((5, 7), value, np.float32))
        m.output(m.quantized(m.node("Gemm", [x, weight], (3, 5), transB=1), 0.02))
    result = verify(round_weights(import_model(m.model())))
    assert [n.weight in result.constants for n in result.of(ops.Dense)] == [False, True]
