"""Winograd's algorithm computes convolutions, and only those that it may."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import TensorType
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX512, NATIVE, SSE
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.operators.winograd import cook_toom, transformed_weights
from vdla.compiler.targets.processor.rewrites.images import block_images
from vdla.compiler.tir.printer import show
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

PAPER = load_config("paper")


@pytest.mark.parametrize(("m", "points"), [(2, (0, 1, -1)), (4, (0, 1, -1, 2, -2)), (1, (0, 1))])
def test_minimal_filters(m, points):
    rng = np.random.default_rng(0)
    found = cook_toom(m, 3, points)
    data, taps = rng.standard_normal(m + 2), rng.standard_normal(3)
    outputs = found.a @ ((found.g @ taps) * (found.b @ data))
    np.testing.assert_allclose(outputs, [data[i : i + 3] @ taps for i in range(m)], atol=1e-12)


@pytest.mark.parametrize("inner", [8, 16])
def test_weights_lie_in_panels(inner):
    weight = np.random.default_rng(0).standard_normal((24, 16, 3, 3)).astype(np.float32)
    found, g = transformed_weights(weight, 8, inner), cook_toom(4, 3, (0, 1, -1, 2, -2)).g
    assert found.shape == (6, 6, 1, 16 // inner, inner, 3, 8)
    for o, c in ((0, 0), (23, 15), (9, 10)):
        tile = found[:, :, 0, c // inner, c % inner, o // 8, o % 8]
        np.testing.assert_allclose(tile, g @ weight[o, c] @ g.T, rtol=1e-6)


def graph_of(channels, outputs, height, width, pads=(1, 1, 1, 1), batch=1, bias=True, **fields):
    """x, a 1 by 1 convolution, so that the second convolution reads blocks, and a Relu."""
    rng = np.random.default_rng(height * width)
    kernel = fields.pop("kernel", (3, 3))
    constants = {
        "v": rng.standard_normal((channels, channels, 1, 1)) / channels**0.5,
        "w": rng.standard_normal((outputs, channels, *kernel)) / (9 * channels) ** 0.5,
        "b": rng.standard_normal(outputs),
    }
    constants = {name: array.astype(np.float32) for name, array in constants.items()}
    first = ops.Conv2d(name="first", output="y", data="x", weight="v")
    second = ops.Conv2d(
        name="second", output="z", data="y", weight="w", bias="b" if bias else None, pads=pads,
        **fields,
    )  # fmt: skip
    shape = (batch, channels, height, width)
    result = second.result_shape([shape, constants["w"].shape])
    tensors = {n: TensorType(a.shape, "float32") for n, a in constants.items()}
    tensors |= {n: TensorType(shape, "float32") for n in "xy"}
    tensors |= {n: TensorType(result, "float32") for n in "zr"}
    relu = ops.Relu(name="relu", output="r", data="z")
    return verify(Graph(("x",), ("r",), (first, second, relu), tensors, constants))


def text_of(graph, vectors=AVX512, processor=NATIVE):
    """The second convolution's function."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(description, "_native_vectors", lambda: vectors)
        blocked = block_images(graph, vectors)
        return show(node_function(blocked.node("second"), blocked, "f", processor).func)


def check(graph):
    x = np.random.default_rng(0).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    want = evaluate(graph, {"x": x})["r"]
    found = Executor(compile_graph(graph, PAPER, Options(device="cpu"))).run({"x": x}).outputs["r"]
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=3e-5)


@settings(max_examples=2)
@given(
    height=st.integers(12, 21), width=st.integers(12, 21), outputs=st.sampled_from([16, 32, 48]),
    pads=st.tuples(*[st.integers(0, 2)] * 4), batch=st.integers(1, 2), bias=st.booleans(),
)  # fmt: skip
def test_any_size(height, width, outputs, pads, batch, bias):
    graph = graph_of(16, outputs, height + 2, width + 2, pads, batch, bias)
    check(graph)


def test_it_is_chosen_where_it_fits():
    assert "dots[" in text_of(graph_of(16, 32, 14, 14))


@pytest.mark.parametrize("changes", [
    {"height": 8}, {"strides": (2, 2)}, {"dilations": (2, 2)}, {"kernel": (3, 1)},
    {"channels": 512, "outputs": 512}, {"outputs": 20},
])  # fmt: skip
def test_others_are_plain_sums(changes):
    sizes = {"channels": 16, "outputs": 32, "height": 28, "width": 28, **changes}
    assert "dots[" not in text_of(graph_of(**sizes))


@pytest.mark.parametrize(("channels", "outputs"), [(16, 24), (24, 16), (8, 40)])
def test_half_blocks(channels, outputs):
    graph = graph_of(channels, outputs, 14, 17)
    assert "dots[" in text_of(graph)
    check(graph)


def test_it_can_be_switched_off():
    graph = graph_of(16, 32, 14, 14)
    assert "dots[" not in text_of(graph, processor=replace(NATIVE, winograd=False))


def test_other_registers(monkeypatch):
    monkeypatch.setattr(description, "_native_vectors", lambda: SSE)
    check(graph_of(8, 8, 13, 12))
