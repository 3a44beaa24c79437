"""Layers at the limits of fields and buffers: another tile, or the host, never an error."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import numbers, ops
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.numbers import pool_scale
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor


def convolution(shape, outputs, kernel, pads=(0, 0, 0, 0), strides=(1, 1)) -> Graph:
    """A graph of one convolution with random weights."""
    rng = np.random.default_rng(5)
    scale = numbers.f32(0.02 / (shape[1] * kernel[0] * kernel[1]) ** 0.5)
    node = ops.QConv2d(
        name="conv",
        output="y",
        data="x",
        weight="w",
        bias="b",
        pads=pads,
        strides=strides,
        zeros=(-3,),
        requant=Requant((scale,) * outputs, 4),
    )
    size = [
        (n + low + high - k) // s + 1
        for n, k, s, low, high in zip(shape[2:], kernel, strides, pads[:2], pads[2:], strict=True)
    ]
    weight = rng.integers(-128, 128, (outputs, shape[1], *kernel), np.int8)
    return Graph(
        ("x",),
        ("y",),
        (node,),
        {
            "x": TensorType(shape, "int8"),
            "y": TensorType((shape[0], outputs, *size), "int8"),
            "w": TensorType(weight.shape, "int8"),
            "b": TensorType((outputs,), "int32"),
        },
        {"w": weight, "b": rng.integers(-99, 99, outputs, np.int32)},
    )


def pool(shape, kernel) -> Graph:
    """A graph of one average pool."""
    node = ops.QAvgPool(
        name="pool", output="y", data="x", kernel=kernel, zeros=(5,),
        requant=Requant((pool_scale(0.1, 0.02, kernel[0] * kernel[1]),), -2),
    )  # fmt: skip
    out = (*shape[:2], shape[2] - kernel[0] + 1, shape[3] - kernel[1] + 1)
    tensors = {"x": TensorType(shape, "int8"), "y": TensorType(out, "int8")}
    return Graph(("x",), ("y",), (node,), tensors, {})


def run(graph: Graph, config_name: str) -> tuple[str, str, Counter[str]]:
    """Compiles, runs and checks; where the operator ran, why, and its instructions by stage."""
    config = load_config(config_name)
    module = compile_graph(graph, config, Options(min_fill=0.0))
    inputs = {"x": np.random.default_rng(6).integers(-128, 128, graph.tensors["x"].shape, np.int8)}
    result = Executor(module, SimDevice(config)).run(inputs)
    np.testing.assert_array_equal(result.outputs["y"], evaluate(graph, inputs)["y"])
    (row,) = (r for r in module.metadata["placement"] if r["op"] == graph.nodes[0].op)
    streams = module.metadata["streams"].values()
    return row["device"], row["reason"], Counter(s for each in streams for s in each["stages"])


def test_strides_beyond_twenty_bits():
    """Channel blocks lie 1100 · 1100 > 2**20 entries apart: one plane per instruction."""
    device, _, _ = run(convolution((1, 32, 1100, 1100), 16, (1, 1), strides=(4, 4)), "paper")
    assert device == "vdla"


def test_padding_beyond_six_bits():
    """A tile low and narrow enough that no LOAD pads by more than its field holds."""
    device, _, stages = run(convolution((1, 16, 5, 4), 16, (3, 3), (70, 66, 80, 90)), "paper")
    assert device == "vdla"
    assert stages["load_inp_pad"] == stages["store8"]


def test_padding_under_a_huge_kernel():
    device, reason, _ = run(convolution((1, 4, 9, 9), 4, (67, 1), (64, 0, 64, 0)), "paper")
    assert device == "cpu"
    assert reason == (
        "config paper: expected buffers that hold one tile of a 67×1 convolution padded by 64 "
        "(at most 63 in one LOAD), found inp 2048, wgt 128, acc 2048 entries"
    )


@pytest.mark.parametrize("config", ["tiny", "paper"])
def test_an_image_one_pixel_wide(config):
    device, _, _ = run(convolution((2, 20, 61, 1), 20, (5, 1), (2, 0, 2, 0)), config)
    assert device == "vdla"


def test_more_taps_than_micro_ops():
    """23 · 13 = 299 taps; tiny's micro-op buffer holds 256."""
    device, _, _ = run(convolution((1, 4, 24, 14), 4, (23, 13)), "tiny")
    assert device == "cpu"


def test_a_window_larger_than_the_accumulators():
    """tiny's accumulators hold 128 vectors: windows are seen some rows at a time."""
    device, _, stages = run(pool((1, 4, 11, 25), (10, 25)), "tiny")
    assert device == "vdla"
    assert stages["load_acc8"] > stages["store8"]


@pytest.mark.parametrize("include", [False, True])
def test_large_windows_with_padding(include):
    """A step of such a window lies in the padding alone; divisors vary where that doesn't count."""
    node = ops.QAvgPool(
        name="pool", output="y", data="x", kernel=(30, 15), pads=(3, 2, 5, 4), strides=(9, 3),
        zeros=(5,), requant=Requant((0.001,), -2), include_pad=include,
    )  # fmt: skip
    shape = (1, 8, 40, 20)
    tensors = {"x": TensorType(shape, "int8")}
    tensors["y"] = TensorType(node.result_shape([shape]), "int8")
    device, _, _ = run(Graph(("x",), ("y",), (node,), tensors, {}), "tiny")
    assert device == "vdla"


def test_a_wide_step_takes_fewer_inputs():
    """Nine taps of 40 input blocks are more micro-ops than tiny holds; of 20, they aren't."""
    device, _, _ = run(convolution((1, 160, 6, 6), 8, (3, 3), (1, 1, 1, 1)), "tiny")
    assert device == "vdla"


def test_a_kernel_beyond_the_weight_buffer():
    device, reason, _ = run(convolution((1, 16, 14, 14), 16, (13, 13)), "paper")
    assert device == "cpu"
    assert "13×13 convolution" in reason


def test_more_parameters_than_the_accumulators_hold():
    """600 channels have 300 vectors of biases and scales, tiny holds 128: loaded tile by tile."""
    device, _, stages = run(convolution((1, 8, 3, 3), 600, (1, 1)), "tiny")
    assert device == "vdla"
    assert stages["load_acc"] == 2 * stages["store8"]


@pytest.mark.parametrize("size", [(17, 17), (40, 30), (112, 112)])
def test_a_large_global_pool(size):
    """More taps than one instruction has micro-ops: a row of the window at a time."""
    device, _, _ = run(pool((1, 32, *size), size), "paper")
    assert device == "vdla"
