"""Transposed convolutions: which become convolutions by parts of the filter, and what they give."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.ops.transposed import phases
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate


def transposed(shape, outputs, kernel, groups=1, seed=0, **attributes):
    """A model of one ConvTranspose with constant weights."""
    rng = np.random.default_rng(seed)
    weight = rng.standard_normal((shape[1], outputs // groups, *kernel)).astype(np.float32)
    bias = rng.standard_normal(outputs).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], group=groups, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", "c", "h", "w"][: len(shape)])],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def kinds(graph):
    return {type(node) for node in graph.nodes}


@settings(max_examples=40)
@given(data=st.data())
def test_any_geometry(data):
    draw, rank = data.draw, data.draw(st.integers(1, 2))
    size = st.integers(1, 6)
    kernel, strides = draw(st.tuples(*[size] * rank)), draw(st.tuples(*[st.integers(1, 3)] * rank))
    pads = [draw(st.integers(0, k - 1)) for k in (*kernel, *kernel)]
    shape = (draw(st.integers(1, 2)), 4, *(draw(size) for _ in kernel))
    cuts = zip(shape[2:], kernel, strides, pads[:rank], pads[rank:], strict=True)
    sizes = [(n - 1) * s + k - low - high for n, k, s, low, high in cuts]
    assume(min(sizes) > 0)
    groups = draw(st.sampled_from([1, 2]))
    model = transposed(shape, 6, kernel, groups, strides=strides, pads=pads)
    graph = import_model(model)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    ours, theirs = evaluate(graph, {"x": x})["y"], ort_run(model, {"x": x})["y"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "parts"),
    [(4, 2, [1, 1, 1, 1], 4), (2, 2, [0, 0, 0, 0], 4), (3, 1, [1, 1, 1, 1], 1)],
)
def test_the_usual_ones_multiply_no_zeros(kernel, stride, pads, parts):
    model = transposed((1, 3, 5, 7), 2, (kernel, kernel), strides=[stride] * 2, pads=pads)
    graph = import_model(model)
    convolutions = [node for node in graph.nodes if isinstance(node, ops.Conv2d)]
    assert len(convolutions) == parts
    assert ops.Take not in kinds(graph)
    taps = sum(graph.constants[node.weight][0, 0].size for node in convolutions)
    assert taps == kernel * kernel


@pytest.mark.parametrize("fields", [{"pads": [1] * 4}, {"pads": [0, 1, 0, 0]}, {}])
def test_pixels_that_the_stride_does_not_divide_are_cut_off(fields):
    model = transposed((1, 3, 5, 7), 2, (3, 3), strides=[2, 2], **fields)
    graph = import_model(model)
    assert sum(isinstance(node, ops.Conv2d) for node in graph.nodes) == 4
    (crop,) = (node for node in graph.nodes if isinstance(node, ops.Take))
    assert -1 not in crop.places
    x = np.random.default_rng(1).standard_normal((1, 3, 5, 7)).astype(np.float32)
    ours, theirs = evaluate(graph, {"x": x})["y"], ort_run(model, {"x": x})["y"]
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_signals_multiply_no_zeros():
    graph = import_model(transposed((1, 3, 7), 2, (5,), strides=[5]))
    convolutions = [node for node in graph.nodes if isinstance(node, ops.Conv2d)]
    assert len(convolutions) == 5
    assert {graph.constants[node.weight].shape for node in convolutions} == {(2, 3, 1, 1)}
    assert ops.Take not in kinds(graph)


def test_a_filter_that_is_computed_stays_whole():
    model = transposed((1, 3, 5, 5), 2, (2, 2), strides=[2, 2])
    weight = model.graph.initializer[0]
    model.graph.node.insert(0, helper.make_node("Neg", ["v"], ["w"]))
    model.graph.input.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, weight.dims))
    del model.graph.initializer[0]
    assert ops.Interleave not in kinds(import_model(model))


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "cut"),
    [(4, 3, 2, (0, 0)), (4, 1, 2, (0, 0)), (2, 4, 2, (4, 0))],
)
def test_phases_that_differ_are_none(size, kernel, stride, cut):
    """The stride doesn't divide the result, has no tap for each phase, or data would be cut."""
    assert phases(size, kernel, stride, cut) is None


def quantized(model, folder):
    from vdla.compiler.models.quantizer import quantize_model

    rng = np.random.default_rng(3)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    samples = [{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(3)]
    quantize_model(onnx.shape_inference.infer_shapes(model), folder / "q.onnx", samples)
    return onnx.load(folder / "q.onnx")


def test_a_quantized_one_is_integer_convolutions(tmp_path):
    from vdla.compiler.graph.passes import optimize

    model = quantized(transposed((1, 4, 5, 6), 3, (4, 4), strides=[2, 2], pads=[1] * 4), tmp_path)
    graph = optimize(import_model(model))
    assert kinds(graph) == {ops.Quantize, ops.QConv2d, ops.QInterleave, ops.Dequantize}
    x = np.random.default_rng(4).standard_normal((1, 4, 5, 6)).astype(np.float32)
    ours, theirs = evaluate(graph, {"x": x})["y"], ort_run(model, {"x": x}, fuse=False)["y"]
    np.testing.assert_array_equal(ours, theirs)
