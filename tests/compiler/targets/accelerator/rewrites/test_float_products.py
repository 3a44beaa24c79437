"""Products of two tensors that a file leaves in floats: integers of the ranges of samples."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from float_blocks import FEATURES, Block, joined, on_host, samples, unfused, write
from onnxruntime.quantization import QuantType

import vdla
from vdla import api
from vdla.compiler.build import Options, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.accelerator.rewrites.float_products import (
    WITHOUT_RANGE,
    spell_products,
)
from vdla.isa.config import load_config
from vdla.options import Quantize

FULL = load_config("paper-full")


def pooled(b, x):
    """Attention over time that pools vectors, as classifiers of sounds have it."""
    scores = b.node("Tanh", b.linear(x, FEATURES, FEATURES))
    shares = b.node("Softmax", b.linear(scores, FEATURES, 1), axis=1)
    axes = b.whole([1])
    return b.node("ReduceSum", b.node("Mul", x, shares), axes, keepdims=0)


def pooling():
    b = Block()
    x = b.norm(b.linear("x", FEATURES, FEATURES))
    y = b.gelu(b.norm(b.linear(pooled(b, x), FEATURES, FEATURES)))
    return b.model(b.linear(y, FEATURES, 8), result=(1, 8))


def attention():
    """One head whose products are Einsum's, which onnxruntime's quantizer leaves floats."""
    b = Block(1)
    x = b.norm("x")
    q, k, v = (b.linear(x, FEATURES, FEATURES) for _ in "qkv")
    scores = b.node("Einsum", q, k, equation="bik,bjk->bij")
    shares = b.node("Softmax", b.node("Mul", scores, b.constant(FEATURES**-0.5)), axis=-1)
    y = b.node("Einsum", shares, v, equation="bij,bjk->bik")
    x = b.node("Add", "x", b.linear(y, FEATURES, FEATURES))
    return b.model(b.linear(b.norm(x), FEATURES, FEATURES))


def cell():
    """Two steps of a gated cell that is written out, whose state is a product and a sum."""
    b, state = Block(2), None
    for step in range(2):
        x = b.node("Gather", "x", b.whole(step), axis=1)
        gate = b.node("Sigmoid", b.linear(x, FEATURES, FEATURES))
        new = b.node("Tanh", b.linear(state or x, FEATURES, FEATURES))
        kept = b.node("Mul", gate, new)
        state = b.node("Add", kept, b.node("Mul", gate, state)) if state else kept
    return b.model(b.linear(state, FEATURES, 8), result=(1, 8))


def memory():
    """Two steps whose data and state lie side by side; the first state is a constant."""
    b = Block(3)
    state = b.constant(np.zeros((1, FEATURES)))
    for step in range(2):
        x = b.node("Gather", "x", b.whole(step), axis=1)
        both = b.node("Concat", x, state, axis=-1)
        gate, new = (b.linear(both, 2 * FEATURES, FEATURES) for _ in range(2))
        state = b.node("Mul", b.node("Sigmoid", gate), b.node("Tanh", new))
    return b.model(b.linear(state, FEATURES, 8), result=(1, 8))


NETWORKS = {"memory": memory, "pooling": pooling, "attention": attention, "cell": cell}
NAMED = {  # the operators that the reason is for
    "memory": {"Binary"}, "pooling": {"Softmax"}, "attention": {"MatMul", "Softmax"},
    "cell": {"Binary"},
}  # fmt: skip
STYLES = {
    "s8": {},
    "u8": {"activation_type": QuantType.QUInt8},
    "by channel": {"per_channel": True},
    "symmetric": {"extra_options": {"ActivationSymmetric": True}},
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_network_runs_whole_with_samples(network, style, tmp_path):
    """Results are those of another sample than ranges are measured with."""
    path = write(NETWORKS[network](), tmp_path / "q.onnx", **STYLES[style])
    module = vdla.compile(path, config=FULL, calibration=joined(samples()))
    assert not on_host(module.metadata["placement"])
    (inputs,) = samples(1, seed=9)
    (result,) = vdla.run(module, inputs).outputs.values()
    wanted = unfused(path, inputs)
    assert np.abs(result - wanted).max() <= 0.04 * np.abs(wanted).max()
    assert np.corrcoef(result.ravel(), wanted.ravel())[0, 1] >= 0.999


@pytest.mark.parametrize("network", NETWORKS)
def test_without_samples_a_reason_says_what_helps(network, tmp_path):
    path = write(NETWORKS[network](), tmp_path / "q.onnx")
    rows = vdla.compile(path, config=FULL).metadata["placement"]
    assert on_host(rows)
    named = {row["op"] for row in rows if WITHOUT_RANGE in row["reason"]}
    assert NAMED[network] <= named


def test_strict_leaves_floats_though_samples_are_known(tmp_path):
    path = write(attention(), tmp_path / "q.onnx")
    graph = import_onnx(path, strict=True)
    _, strict = placed_graph(graph, FULL, Options(strict=True))
    _, known = placed_graph(graph, FULL, Options(strict=True, samples=joined(samples())))
    assert known == strict


def test_shares_of_many_vectors_have_steps(tmp_path):
    """Shares of 20 vectors are about 1/20: int8 of their own range has 200 steps, not 13."""
    path = write(pooling(), tmp_path / "q.onnx")
    graph, _ = placed_graph(import_onnx(path), FULL, Options(samples=joined(samples())))
    (softmax,) = graph.of(QSoftmax)
    assert softmax.requant.scale[0] < 0.5 / 255
    (inputs,) = samples(1, seed=9)
    assert np.ptp(evaluate(graph, inputs)[softmax.output].astype(int)) > 50


def test_samples_beside_activations_of_16_bits(tmp_path):
    """A file that has 16 bits in some tensors, and floats in others."""
    onnx.save(attention(), tmp_path / "f.onnx")
    names = [n.name for n in attention().graph.node if n.op_type in ("Einsum", "Softmax")]
    options = Quantize(calibration=joined(samples()), bits16=["all"], exclude=names)
    api.quantize(tmp_path / "f.onnx", tmp_path / "q.onnx", options)
    module = vdla.compile(tmp_path / "q.onnx", config=FULL, calibration=joined(samples()))
    (inputs,) = samples(1, seed=9)
    (result,) = vdla.run(module, inputs).outputs.values()
    wanted = unfused(tmp_path / "q.onnx", inputs)
    assert np.corrcoef(result.ravel(), wanted.ravel())[0, 1] >= 0.999


@pytest.mark.parametrize(("a", "b", "axes", "kept", "spelled"), [
    ((2, 5, 6), (2, 5, 1), (1,), False, True),
    ((2, 5, 6), (2, 5, 1), (1,), True, True),
    ((2, 5, 1), (2, 5, 6), (1,), False, True),
    ((2, 3, 5, 4), (2, 1, 5, 4), (2, 3), False, True),
    ((3, 1, 5), (1, 4, 5), (2,), True, True),
    ((2, 5, 6), (2, 1, 6), (2,), False, True),
    ((2, 5, 6), (2, 5, 6), (1,), False, False),  # both have all axes: no product of matrices
    ((2, 5, 6), (2, 1, 6), (1,), False, False),  # one factor lacks the axis that is summed over
])  # fmt: skip
def test_sums_of_products_are_products_of_matrices(a, b, axes, kept, spelled):
    shape = np.broadcast_shapes(a, b)
    result = tuple(1 if n in axes else size for n, size in enumerate(shape))
    if not kept:
        result = tuple(size for n, size in enumerate(shape) if n not in axes)
    shapes = {"a": a, "b": b, "p": shape, "y": result}
    nodes = (
        ops.Binary(name="p", output="p", a="a", b="b", function="mul"),
        ops.Reduce(name="y", output="y", data="p", function="sum", axes=axes, keepdims=kept),
    )
    tensors = {name: TensorType(sizes, "float32") for name, sizes in shapes.items()}
    graph = verify(Graph(("a", "b"), ("y",), nodes, tensors, {}))
    other = verify(spell_products(graph))
    assert len(other.of(ops.MatMul)) == spelled
    rng = np.random.default_rng(3)
    inputs = {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in "ab"}
    results = [evaluate(each, inputs)["y"] for each in (graph, other)]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5, atol=1e-6)
