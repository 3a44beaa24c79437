"""Taps as channels: which convolutions are folded, how, and that nothing else changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph, placed_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.graph.window import Window
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.rewrites.fuse_conversions import fuse_conversions
from vdla.compiler.targets.accelerator.rewrites.layout import layout
from vdla.compiler.targets.accelerator.rewrites.taps import fold_taps
from vdla.compiler.targets.target import place
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

PAPER, TINY = load_config("paper"), load_config("tiny")
OUTPUT = "y"


def network(
    channels=3, size=(9, 8), kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1), dilations=(1, 1),
    outputs=5, quantized=True, zero=-3,
) -> Graph:  # fmt: skip
    """[Quantize →] QConv2d → Dequantize."""
    rng = np.random.default_rng(1)
    out = Window(kernel, strides, pads, dilations).places(size)
    constants = {
        "w": rng.integers(-128, 128, (outputs, channels, *kernel), np.int8),
        "b": rng.integers(-900, 900, outputs, np.int32),
    }
    data = TensorType((1, channels, *size), "int8")
    result = TensorType((1, outputs, *out), "int8")
    nodes = [
        ops.QConv2d(
            name="conv", output="v", data="q", weight="w", bias="b", strides=strides, pads=pads,
            dilations=dilations, zeros=(zero,), requant=Requant((0.004,) * outputs, 2),
        ),
        ops.Dequantize(name="real", output=OUTPUT, data="v", scale=(0.5,), zero_point=(2,)),
    ]  # fmt: skip
    tensors = {"q": data, "v": result, OUTPUT: TensorType(result.shape, "float32")}
    if quantized:
        tensors["x"] = TensorType(data.shape, "float32")
        quantize = ops.Quantize(
            name="quantize", output="q", data="x", scale=(0.02,), zero_point=(zero,)
        )
        nodes.insert(0, quantize)
    tensors |= {n: TensorType(a.shape, str(a.dtype)) for n, a in constants.items()}
    inputs = ("x",) if quantized else ("q",)
    return verify(Graph(inputs, (OUTPUT,), tuple(nodes), tensors, constants))


def image(graph: Graph) -> dict[str, np.ndarray]:
    """A random input."""
    name, rng = graph.inputs[0], np.random.default_rng(2)
    kind = graph.tensors[name]
    if kind.dtype == "int8":
        return {name: rng.integers(-128, 128, kind.shape, np.int8)}
    return {name: rng.standard_normal(kind.shape).astype(np.float32)}


def patches(graph: Graph, config=PAPER) -> list[tuple[int, int]]:
    """The kernels of the Im2col nodes that folding inserts."""
    return [
        n.kernel for n in fold_taps(graph, Capability(config)).nodes if isinstance(n, ops.Im2col)
    ]


def test_the_first_layer_of_resnet_becomes_ten_full_blocks():
    graph = network(size=(224, 224), kernel=(7, 7), strides=(2, 2), pads=(3, 3, 3, 3), outputs=64)
    folded = verify(fold_taps(graph, Capability(PAPER)))
    conv = folded.node("conv")
    assert folded.tensors[conv.data].shape == (1, 147, 112, 112)
    assert folded.constants[conv.weight].shape == (64, 147, 1, 1)
    assert (conv.strides, conv.pads) == ((1, 1), (0, 0, 0, 0))


def test_where_memory_is_the_bound_one_row_is_folded():
    """All 9 taps would fill two blocks of a large image; three fill one."""
    assert patches(network(size=(64, 64), outputs=16)) == [(1, 3)]
    assert patches(network(size=(64, 64), outputs=64)) == [(3, 3)]


@pytest.mark.parametrize(
    "graph",
    [
        network(channels=8),  # half of the lanes: well enough
        network(size=(2, 2), kernel=(1, 1), pads=(1, 1, 1, 1), strides=(3, 3)),  # padding alone
    ],
)
def test_others_stay(graph):
    assert patches(graph) == []


def test_data_of_the_accelerator_stay_there():
    graph = network(quantized=False)
    pool = ops.QMaxPool(name="pool", output="q", data="p", kernel=(1, 1))
    kind = graph.tensors["q"]
    behind = graph.copy(nodes=(pool, *graph.nodes), tensors={"p": kind})
    behind.inputs = ("p",)
    assert patches(verify(behind)) == []


def test_one_weight_may_be_folded_in_two_ways():
    graph = network(size=(64, 64), outputs=16)
    sparse = replace(graph.node("conv"), name="sparse", output="s", strides=(7, 7))
    both = graph.copy(
        nodes=(*graph.nodes, sparse), tensors={"s": TensorType((1, 16, 10, 10), "int8")}
    )
    both.outputs = (OUTPUT, "s")
    assert patches(verify(both)) == [(1, 3), (3, 3)]
    inputs, folded = image(both), verify(fold_taps(both, Capability(PAPER)))
    want, got = evaluate(both, inputs), evaluate(folded, inputs)
    for name in both.outputs:
        np.testing.assert_array_equal(got[name], want[name])


def test_nothing_is_folded_for_the_host_alone():
    graph, _ = placed_graph(network(), PAPER, Options(device="cpu"))
    assert graph.node("conv").data == "q"
    graph, _ = placed_graph(network(), PAPER)
    assert graph.node("conv").data != "q"


EXTENTS = st.tuples(st.integers(5, 9), st.integers(5, 9))
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@settings(max_examples=30)
@given(
    channels=st.integers(1, 3), size=EXTENTS, kernel=PAIRS, strides=PAIRS,
    dilations=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    pads=st.tuples(*[st.integers(0, 2)] * 4), zero=st.sampled_from((-128, -3, 0, 127)),
    config=st.sampled_from((PAPER, load_config("narrow"), load_config("wide"))),
)  # fmt: skip
def test_folding_and_fusing_keep_every_bit(
    channels, size, kernel, strides, dilations, pads, zero, config
):
    graph = network(channels, size, kernel, strides, pads, dilations, zero=zero)
    inputs = image(graph)
    want = evaluate(graph, inputs)[OUTPUT]
    folded = verify(fold_taps(graph, Capability(config)))
    np.testing.assert_array_equal(evaluate(folded, inputs)[OUTPUT], want)
    fused, _ = fuse_conversions(
        *layout(folded, place(folded, Options().targets(config)), config.channel_block)
    )
    np.testing.assert_array_equal(evaluate(fused, inputs)[OUTPUT], want)


@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("kernel", [(3, 3), (1, 3), (3, 1)])
def test_the_host_has_the_boundary_alone(kernel, quantized):
    graph = network(kernel=kernel, pads=(0, 1, 1, 0), quantized=quantized)
    inputs = image(graph)
    module = compile_graph(graph, PAPER, Options())
    placed = [(p["op"], p["device"]) for p in module.metadata["placement"]]
    first = [("Quantize", "cpu")] if quantized else [("Im2col", "cpu"), ("Pack", "cpu")]
    assert placed == [*first, ("QConv2d", "vdla"), ("Dequantize", "cpu")]
    got = Executor(module, SimDevice(PAPER)).run(inputs).outputs[OUTPUT]
    np.testing.assert_array_equal(got, evaluate(graph, inputs)[OUTPUT])
