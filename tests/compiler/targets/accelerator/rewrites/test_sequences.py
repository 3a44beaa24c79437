"""Layers of sequences on images: which nodes move, and that numbers stay what they were."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from qdq import QdqModel

from vdla.compiler.build import Options, compile_graph, placed_graph, rewritten_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph.ir import STRICT
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.passes.fuse_integer import fuse_residual
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.window import Window
from vdla.compiler.models.quantizer import quantize_model
from vdla.compiler.models.transformers import SequenceBuilder, Sizes, vit
from vdla.compiler.placement import report
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.rows import sequences_as_rows
from vdla.compiler.targets.accelerator.rewrites.sequences import sequences_as_images
from vdla.isa.config import load_config
from vdla.runtime import Executor
from vdla.runtime.devices.sim import SimDevice

TINY = load_config("tiny", ["table_bytes=2048"])
FULL = load_config("tiny", ["table_bytes=2048", "reciprocal_units=2"])
SIZES = [Sizes(blocks=1, features=32, heads=2, length=5), Sizes(1, 24, 3, 7)]


@pytest.fixture(params=SIZES, ids=lambda sizes: f"{sizes.features} features", scope="module")
def transformer(request, tmp_path_factory):
    """A vision transformer of one block, quantized, and an image for it."""
    path, sizes = tmp_path_factory.mktemp("vit") / "vit.onnx", request.param
    side = 4 * (sizes.length - 1)
    builder = vit(sizes, image=(1, 3, 4, side), patch=4)
    quantize_model(builder.model("head"), path, builder.samples)
    return optimize(import_onnx(path)), builder.samples[0]["input"]


def kinds(graph):
    return [node.op for node in graph.nodes]


def test_dense_layers_are_convolutions(transformer):
    graph, image = transformer
    moved = fuse_residual(sequences_as_images(graph, Capability(TINY)))
    assert kinds(graph).count("QDense") == 7
    assert kinds(moved).count("QDense") == 1  # of the class token alone
    assert kinds(moved).count("QConv2d+Add") == 2
    assert all(len(moved.tensors[n.output].shape) == 4 for n in moved.nodes if n.op == "QTable")
    wanted = evaluate(graph, {"input": image})["head"]
    np.testing.assert_array_equal(evaluate(moved, {"input": image})["head"], wanted)


def test_the_accelerator_gives_the_same(transformer):
    graph, image = transformer
    module = compile_graph(graph, TINY, Options())
    placed = {row["name"]: row for row in module.metadata["placement"]}
    assert placed["with_token"]["device"] == "vdla"
    result = Executor(module, SimDevice(TINY)).run({"input": image}).outputs["head"]
    np.testing.assert_array_equal(result, evaluate(graph, {"input": image})["head"])


def test_strict_leaves_what_may_differ_to_the_host(transformer):
    """Tables and products stay on the accelerator, and the placement says what doesn't and why."""
    graph, _ = transformer
    moved = sequences_as_images(graph, Capability(FULL, strict=True))
    assert [kinds(moved).count(op) for op in ("QSoftmax", "QNormalize", "QTable")] == [0, 0, 1]
    assert kinds(moved).count("QMatMul") == 2
    assert not any(STRICT in reason for reason in graph.reasons.values())
    placed = report(*placed_graph(graph, FULL, Options(strict=True)))
    reasons = {row["op"]: row["reason"] for row in placed if STRICT in row["reason"]}
    assert reasons["Softmax"] == (
        "float operator Softmax: kept on the host by --strict: softmax in integers may differ by "
        "1 LSB"
    )
    assert reasons["Reduce"] == (
        "float operator mean: kept on the host by --strict: a normalization in integers may differ "
        "by 1 LSB"
    )


def test_a_block_is_whole(transformer):
    """With reciprocals nothing between the first and the last integers is left to the host, and a
    product by the root of the features, whose result has its own scale, is none at all."""
    graph, image = transformer
    moved = sequences_as_images(sequences_as_rows(graph, FULL), Capability(FULL))
    assert [kinds(moved).count(op) for op in ("QSoftmax", "QNormalize", "Quantize")] == [1, 3, 1]
    softmax = kinds(moved).index("QSoftmax")
    assert kinds(moved)[softmax - 1] == "QMatMul"
    module = compile_graph(graph, FULL, Options())
    host = [row["op"] for row in module.metadata["placement"] if row["device"] == "cpu"]
    assert host == ["Quantize", "Dequantize"]
    result = Executor(module, SimDevice(FULL)).run({"input": image}).outputs["head"]
    np.testing.assert_array_equal(result, evaluate(moved, {"input": image})["head"])


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """(Q · Kᵀ) · V of two heads of eight vectors, without a softmax between, and its input."""
    path, rng = tmp_path_factory.mktemp("products") / "products.onnx", np.random.default_rng(5)
    b = SequenceBuilder("products", 3, rng.standard_normal((1, 8, 12)).astype(np.float32))
    x = b.linear("first", "input", 16)
    parts = []
    for name, perm in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        heads = b.reshape(f"{name}.heads", b.linear(name, x, 16), (1, 8, 2, 8))
        parts.append(b.transpose(f"{name}.turned", heads, perm))
    q, k, v = parts
    scores = b.emit("MatMul", "scores", [q, k], b.values[q] @ b.values[k])
    mixed = b.emit("MatMul", "mixed", [scores, v], b.values[scores] @ b.values[v])
    mixed = b.transpose("mixed.turned", mixed, (0, 2, 1, 3))
    b.linear("last", b.reshape("joined", mixed, (1, 8, 16)), 12)
    quantize_model(b.model("last"), path, [{"input": b.values["input"]}])
    return optimize(import_onnx(path)), b.values["input"]


def test_products_of_activations(products):
    """Heads are images by addresses; the one product needs V with its pixels as channels."""
    graph, sequence = products
    moved = sequences_as_images(graph, Capability(TINY))
    made = [op for op in kinds(moved) if op in ("QMatMul", "QTransposeImage", "MatMul")]
    assert made == ["QMatMul", "QTransposeImage", "QMatMul"]
    between = kinds(moved)[kinds(moved).index("QMatMul") : -4]
    assert not {"QReshape", "QTranspose"} & set(between)
    wanted = evaluate(graph, {"input": sequence})["last"]
    result = evaluate(moved, {"input": sequence})["last"]
    scale = next(n.scale[0] for n in graph.nodes if n.output == "last")
    assert np.abs(result - wanted).max() <= 1.001 * scale  # onnxruntime adds up floats


def test_products_on_the_accelerator(products):
    graph, sequence = products
    module = compile_graph(graph, TINY, Options())
    result = Executor(module, SimDevice(TINY)).run({"input": sequence}).outputs["last"]
    wanted = evaluate(sequences_as_images(graph, Capability(TINY)), {"input": sequence})["last"]
    np.testing.assert_array_equal(result, wanted)


def test_images_in_rows_are_no_sequence():
    m = QdqModel(4)
    y = m.conv(m.input("x", (2, 8, 3, 3)), 8, 1)
    flat = m.node("Flatten", [y], (2, 72), axis=1)
    m.scales[flat] = m.scales[y]
    m.output(m.dense(flat, 10))
    graph = optimize(import_model(m.model()))
    assert kinds(sequences_as_images(graph, Capability(TINY))) == kinds(graph)


def test_a_dense_layer_that_the_accelerator_refuses_stays():
    """Too few features: what the layer reads and writes stays rows."""
    m = QdqModel(4)
    x = m.input("x", (1, 9, 1))
    flat = m.node("Flatten", [x], (9, 1), axis=2)
    m.scales[flat] = m.scales[x]
    m.output(m.dense(flat, 10))
    graph = optimize(import_model(m.model()))
    config = load_config("paper")
    assert kinds(sequences_as_images(graph, Capability(config))) == kinds(graph)


@pytest.mark.parametrize("shapes", [((), (1, 1)), ((1, 1), ())])
def test_numbers_are_no_sequence(shapes):
    """A reshape of a number had no first axis to ask for."""
    m = QdqModel(6)
    x = m.input("x", shapes[0])
    shape = m.constant("shape", np.array(shapes[1], np.int64))
    y = m.node("Reshape", [x, shape], shapes[1])
    m.output(m.same_quant(x, y))
    graph = optimize(import_model(m.model()))
    assert kinds(sequences_as_images(graph, Capability(TINY))) == kinds(graph)


def test_parts_of_a_sequence_share_its_rows():
    """A Split in two was refused: both parts made the rows, under one name."""
    shape, m = (1, 10, 16), QdqModel(5)
    y = m.quantized(m.node("Relu", [m.input("x", shape, 0.05)], shape), 0.05, 0)
    sizes = m.constant("sizes", np.array([2, 8]))
    m.nodes.append(helper.make_node("Split", [y, sizes], ["few", "many"], axis=1, name="split"))
    m.shapes |= {"few": (1, 2, 16), "many": (1, 8, 16)}
    for name in ("few", "many"):
        m.output(m.quantized(name, 0.05, 0))
    graph = import_model(m.model())
    made, _ = rewritten_graph(graph, load_config("paper-full"))
    x = {"x": np.random.default_rng(1).normal(0, 2, shape).astype(np.float32)}
    values, wanted = evaluate(made, x), evaluate(graph, x)
    for name in graph.outputs:
        np.testing.assert_array_equal(values[name], wanted[name])


def test_a_concatenation_of_pixels_stays_one():
    """Images of one pixel fitted other orders of axes, too, and went back on the host."""
    m = QdqModel(7)
    x = m.input("x", (1, 16, 3, 1))
    parts = [m.conv(x, 16, Window((3, 1), (1, 1), (0, 0, 0, 0))) for _ in range(2)]
    m.output(m.conv(m.concat(parts), 16, 1))
    graph = optimize(import_model(m.model()))
    assert "QConcat" in kinds(graph)
    assert kinds(sequences_as_images(graph, Capability(FULL))) == kinds(graph)


def test_a_gate_of_one_pixel_stays_an_image():
    """Its axes of one element fit other orders as well, for which it would be moved and back."""
    m = QdqModel(3)
    x = m.conv(m.input("x", (1, 16, 8, 8)), 16, 1)
    y = m.quantized(m.node("GlobalAveragePool", [x], (1, 16, 1, 1)), 0.02)
    y = m.node("HardSigmoid", [m.conv(y, 16, 1)], (1, 16, 1, 1))
    gate = m.quantized(y, 1 / 255, -128)
    m.output(m.conv(m.quantized(m.node("Mul", [x, gate], (1, 16, 8, 8)), 0.1), 16, 1))
    graph, _ = rewritten_graph(import_model(m.model()), TINY)
    assert not {"QReshape", "QTranspose"} & {*kinds(graph)}
    assert "QTable" in kinds(graph)
