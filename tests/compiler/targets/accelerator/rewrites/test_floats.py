"""Floats between integers: blocks of transformers of which products alone are quantized."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from float_blocks import FEATURES, Block, joined, on_host, samples, unfused, write
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

import vdla
from vdla.compiler.build import Options, placed_graph
from vdla.compiler.frontend.onnx import import_onnx
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.byte_sum import QByteSum
from vdla.compiler.graph.ops.wide import Dequantize16, Quantize16
from vdla.compiler.graph.ops.wide_normalize import QWideNormalize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.byte_sums import sums_as_bytes
from vdla.compiler.targets.accelerator.rewrites.floats import FLOATS, quantize_floats
from vdla.isa.config import load_config

FULL = load_config("paper-full")


def network(last=False):
    b = Block()
    x = b.linear("x", FEATURES, FEATURES)
    for _ in range(2):
        y = b.linear(x if last else b.norm(x), FEATURES, 64)
        x = b.node("Add", x, b.linear(b.gelu(y), 64, FEATURES))
        x = b.norm(x) if last else x
    return b.model(b.linear(x if last else b.norm(x), FEATURES, FEATURES))


def with_float_residuals(path):
    """The file with sums that read floats before they are quantized for the products."""
    model = onnx.load(str(path))
    makers = {name: node for node in model.graph.node for name in node.output}
    for node in model.graph.node:
        for number, name in enumerate(node.input if node.op_type == "Add" else ()):
            end = makers.get(name)
            start = makers.get(end.input[0]) if end and end.op_type == "DequantizeLinear" else None
            real = start.input[0] if start and start.op_type == "QuantizeLinear" else ""
            if real in makers and makers[real].op_type == "LayerNormalization":
                node.input[number] = real
    onnx.save(model, str(path))
    return path


STYLES = {
    "s8": {},
    "u8": {"activation_type": QuantType.QUInt8},
    "by channel": {"per_channel": True},
    "symmetric": {"extra_options": {"ActivationSymmetric": True}},
}


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
@pytest.mark.parametrize("style", STYLES)
def test_a_block_runs_whole_and_is_near_the_file(style, last, tmp_path):
    path = write(network(last), tmp_path / "q.onnx", **STYLES[style])
    module = vdla.compile(path, config=FULL)
    assert not on_host(module.metadata["placement"])
    (inputs,) = samples(1, seed=9)
    (result,) = vdla.run(module, inputs).outputs.values()
    wanted = unfused(path, inputs)
    assert np.abs(result - wanted).max() <= 0.04 * np.abs(wanted).max()  # 5 steps of 255
    assert np.corrcoef(result.ravel(), wanted.ravel())[0, 1] >= 0.9995


def quantized(path, **options):
    """The graph with its floats quantized, and its values."""
    graph = quantize_floats(import_onnx(path), Capability(FULL), **options)
    return graph, evaluate(graph, samples(1, seed=9)[0])


def test_a_stream_of_normalized_tensors_has_sixteen_bits(tmp_path):
    path = with_float_residuals(write(network(last=True), tmp_path / "q.onnx"))
    module = vdla.compile(path, config=FULL)
    assert not on_host(module.metadata["placement"])
    graph, _ = placed_graph(import_onnx(path), FULL)
    assert [n.requant is None for n in graph.of(QWideNormalize)] == [True, False]
    (inputs,) = samples(1, seed=9)
    (result,) = vdla.run(module, inputs).outputs.values()
    wanted = unfused(path, inputs)
    assert np.corrcoef(result.ravel(), wanted.ravel())[0, 1] >= 0.9995


@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_no_tensor_of_sixteen_bits_is_limited_or_off(last, tmp_path):
    """Each is within half a step of what it stands for, and no number is beyond its range."""
    graph, values = quantized(write(network(last), tmp_path / "q.onnx"))
    wide = graph.of(Quantize16)
    assert len(wide) == (2 if last else 3)
    for node in wide:
        steps = values[node.data] / node.scale[0]
        assert np.abs(steps).max() <= node.high
        assert np.abs(values[node.output] - steps).max() <= 0.5 + 1e-3
        assert np.abs(values[node.output]).max() > 500  # and most of the bits are used


def test_functions_read_the_part_of_their_range_that_matters(tmp_path):
    """A GELU's result is 0 far below 0, so that its operand has no steps there."""
    graph, values = quantized(write(network(), tmp_path / "q.onnx"))
    inserted = [n for n in graph.of(ops.Quantize) if n.output.endswith(".integers")]
    assert len(inserted) == 2
    for node in inserted:
        low = (-128 - node.zero_point[0]) * node.scale[0]
        assert -4.0 < low < -1.0
        assert values[node.data].min() < low or values[node.output].min() > -128


def test_strict_says_why_floats_stay(tmp_path):
    path = write(network(), tmp_path / "q.onnx")
    module = vdla.compile(path, config=FULL, strict=True)
    rows = [row for row in module.metadata["placement"] if FLOATS in row["reason"]]
    assert {row["op"] for row in rows} == {"Add"}
    assert all(row["reason"].startswith("float operator Add: kept on the host by") for row in rows)
    (inputs,) = samples(1, seed=9)
    (result,) = vdla.run(module, inputs).outputs.values()
    wanted = unfused(path, inputs)
    assert np.abs(result - wanted).max() <= 0.011 * np.abs(wanted).max()  # a step


def residual_of_input():
    b = Block()
    y = b.linear(b.norm("x"), FEATURES, FEATURES)
    return b.model(b.linear(b.norm(b.node("Add", "x", y)), FEATURES, FEATURES))


def test_an_inputs_range_comes_from_samples(tmp_path):
    path = write(residual_of_input(), tmp_path / "q.onnx")
    without = vdla.compile(path, config=FULL)
    assert on_host(without.metadata["placement"])
    module = vdla.compile(path, config=FULL, calibration=joined(samples()))
    assert not on_host(module.metadata["placement"])
    (inputs,) = samples(1, seed=9)
    results = [next(iter(vdla.run(m, inputs).outputs.values())) for m in (module, without)]
    assert np.abs(results[0] - results[1]).max() <= 0.04 * np.abs(results[1]).max()


def quantized_whole(path):
    rest = iter(samples())

    class Reader(CalibrationDataReader):
        def get_next(self):
            return next(rest, None)

    quantize_static(network(), path, Reader(), weight_type=QuantType.QInt8)
    return path


def test_a_graph_that_is_quantized_stays_as_it_is(tmp_path):
    graph = import_onnx(quantized_whole(tmp_path / "q.onnx"))
    assert quantize_floats(graph, Capability(FULL)) is graph


def test_samples_change_nothing_where_all_is_quantized(tmp_path):
    path, (inputs,) = quantized_whole(tmp_path / "q.onnx"), samples(1, seed=9)
    graphs = [
        placed_graph(import_onnx(path), FULL, Options(samples=given))[0]
        for given in ({}, joined(samples()))
    ]
    assert [len(graph.nodes) for graph in graphs] == [len(graphs[0].nodes)] * 2
    results = [evaluate(graph, inputs)[graph.outputs[0]] for graph in graphs]
    np.testing.assert_array_equal(*results)


def test_sums_lie_as_bytes_bit_for_bit(tmp_path):
    path = write(network(), tmp_path / "q.onnx")
    graph, _ = placed_graph(import_onnx(path), FULL)
    assert len(graph.of(QByteSum)) == 3
    assert len(graph.of(QWideNormalize)) == 3
    assert not graph.of(Dequantize16)
    inputs, (output,) = samples(1, seed=9)[0], graph.outputs
    whole, _ = placed_graph_without(sums_as_bytes, path)
    assert not whole.of(QByteSum)
    np.testing.assert_array_equal(evaluate(graph, inputs)[output], evaluate(whole, inputs)[output])


def placed_graph_without(rewrite, path):
    """The graph as the accelerator has it without one of its rewrites."""
    from vdla.compiler.targets.accelerator import target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target, rewrite.__name__, lambda graph, accelerator: graph)
        return placed_graph(import_onnx(path), FULL)
