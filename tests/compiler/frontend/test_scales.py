"""Scales of 0, which dead channels have, and negative ones: as onnxruntime takes them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ValueInfoProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

F = np.float32
RNG = np.random.default_rng(8)
X = np.round(RNG.standard_normal((1, 16, 6, 6)) * 4).astype(F)  # a tenth of them are 0
SCALES = [np.array(s, F) for s in (0, -0.25, [0.5, 0, -0.25, -0.125])]


def model(nodes, x, constants):
    graph = helper.make_graph(
        [helper.make_node(o, i.split(), [r], r, **a) for o, i, r, a in nodes],
        "g",
        [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)],
        [ValueInfoProto(name=nodes[-1][2])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def check(proto, x):
    """The graph, whose result is onnxruntime's in every bit but a zero's sign."""
    graph = import_model(proto, "m")
    (expected,) = ort_run(proto, {"x": x}, fuse=False).values()
    actual = evaluate(graph, {"x": x})[graph.outputs[0]]
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)
    return graph


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("scale", SCALES, ids=["dead", "negative", "channels"])
def test_dequantize(scale, dtype, known):
    """All integers of a type, so that some leave it when they are turned around zero."""
    limits = np.iinfo(dtype if dtype != "int32" else "int16")
    data = np.linspace(limits.min, limits.max, 3 * 4 * 64).astype(dtype).reshape(3, 4, 64)
    zero = np.full(scale.shape, 0 if dtype == "int32" else 7, dtype)
    constants = {"s": scale, "z": zero, **({"q": data} if known else {})}
    nodes = [("DequantizeLinear", f"{'q' if known else 'x'} s z", "r", {"axis": 1})]
    if known:
        graph = check(model([*nodes, ("Add", "x r", "y", {})], X[0, 0, :3, :1, None], constants),
                      X[0, 0, :3, :1, None])  # fmt: skip
        (node,) = (n for n in graph.nodes if isinstance(n, ops.Dequantize))
        assert min(node.scale) > 0
    else:
        check(model(nodes, data, constants), data)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("scale", SCALES, ids=["dead", "negative", "channels"])
def test_quantize(scale, dtype):
    x = X[:, :4]
    constants = {"s": scale, "z": np.full(scale.shape, 3, dtype)}
    check(model([("QuantizeLinear", "x s z", "y", {"axis": 1})], x, constants), x)


def convolutions(middle=0.31):
    """Two quantized convolutions; the first has dead and negative channels, and biases in all."""
    rng, scale = np.random.default_rng(3), np.full(16, 0.0213, F)
    scale[[1, 5]], scale[[2, 7]] = 0, -0.0213
    weight = rng.integers(-128, 128, (16, 16, 3, 3)).astype(np.int8)
    weight[[2, 7]] = np.maximum(weight[[2, 7]], -127)
    bias = rng.integers(-400, 400, 16).astype(np.int32)
    constants = {
        "sx": F(0.0517), "z": np.int8(0), "sm": F(middle), "w": weight, "sw": scale,
        "zw": np.zeros(16, np.int8), "b": bias, "sb": scale * F(0.0517),
        "zb": np.zeros(16, np.int32),
        "v": weight[::-1].copy(), "sv": F(0.0107),
    }  # fmt: skip
    nodes = [
        ("QuantizeLinear", "x sx z", "xq", {}), ("DequantizeLinear", "xq sx z", "xd", {}),
        ("DequantizeLinear", "w sw zw", "wd", {"axis": 0}),
        ("DequantizeLinear", "b sb zb", "bd", {"axis": 0}),
        ("Conv", "xd wd bd", "c", {"pads": [1, 1, 1, 1]}),
        ("QuantizeLinear", "c sm z", "cq", {}), ("DequantizeLinear", "cq sm z", "cd", {}),
        ("DequantizeLinear", "v sv z", "vd", {}), ("Conv", "cd vd", "e", {}),
        ("QuantizeLinear", "e sm z", "eq", {}), ("DequantizeLinear", "eq sm z", "y", {}),
    ]  # fmt: skip
    return model(nodes, X, constants)


def run(proto, target):
    """The module for ``target``, whose result in the simulator or on the host is onnxruntime's."""
    config = load_config("tiny")
    options = Options(*(["cpu"] if target == "cpu" else []), processor=Processor(quick=True))
    module = compile_graph(import_model(proto, "m"), config, options)
    device = CpuDevice() if target == "cpu" else SimDevice(config)
    (actual,) = Executor(module, device).run({"x": X}).outputs.values()
    (expected,) = ort_run(proto, {"x": X}, fuse=False).values()
    np.testing.assert_array_equal(actual, expected)
    return module


@pytest.mark.parametrize("target", ["cpu", "vdla"])
def test_dead_and_negative_channels_of_weights(target):
    """Both convolutions stay integers."""
    proto = convolutions()
    graph = optimize(import_model(proto, "m"))
    assert [n.op for n in graph.nodes if "Conv" in n.op] == ["QConv2d", "QConv2d"]
    run(proto, target)


def test_a_negative_scale_between_layers_leaves_them_to_the_host():
    module = run(convolutions(middle=-0.25), "vdla")
    reasons = {p["name"]: p["reason"] for p in module.metadata["placement"]}
    assert reasons["cq"] == "float operator div: expected positive scales, found -0.25"
    assert reasons["cd.5"] == "float operator mul: expected positive scales, found -0.25"
