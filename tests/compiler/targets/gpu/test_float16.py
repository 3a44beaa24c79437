"""Numbers that become float16 between float32 are rounded, in kernels for every driver."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.host_gpu import HostGpu, sources_for_host
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.isa.config import load_config
from vdla.names.where import Where
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.executor import Executor

VALUES = np.array([70000, 0.3337, 65519, 65520, -1e6, 6e-8, 1 + 2**-11, -0.0], np.float32)
HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT


def network(*nodes, code=FLOAT):
    ends = (("x", code), ("y", FLOAT))
    x, y = ([helper.make_tensor_value_info(n, c, VALUES.shape)] for n, c in ends)
    half = numpy_helper.from_array(np.float16(1.5), "half")
    graph = helper.make_graph(list(nodes), "halves", x, y, [half])
    opsets = [helper.make_opsetid("", 17)]
    return import_model(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def cast(source, target, code):
    return helper.make_node("Cast", [source], [target], to=code)


NETWORKS = {
    "there and back": network(cast("x", "a", HALF), cast("a", "y", FLOAT)),
    "between others": network(
        helper.make_node("Neg", ["x"], ["n"]), cast("n", "a", HALF), cast("a", "b", FLOAT),
        helper.make_node("Abs", ["b"], ["y"]),
    ),
    "of doubles": network(
        cast("x", "d", TensorProto.DOUBLE), cast("d", "a", HALF), cast("a", "y", FLOAT)
    ),
    "a sum of halves": network(
        cast("x", "a", HALF), helper.make_node("Add", ["a", "a"], ["s"]), cast("s", "y", FLOAT)
    ),
    "a product of halves": network(
        cast("x", "a", HALF), helper.make_node("Mul", ["a", "half"], ["s"]), cast("s", "y", FLOAT)
    ),
    "of integers": network(
        cast("x", "i", TensorProto.INT32), cast("i", "a", HALF), cast("a", "y", FLOAT)
    ),
}  # fmt: skip


def run(graph, device, **more):
    module = compile_graph(graph, load_config("tiny"), Options(device=device, **more))
    ready = Executor(module, gpu=HostGpu()) if more else Executor(module, CpuDevice(device))
    return ready.run({"x": VALUES}).outputs["y"]


@pytest.mark.parametrize("name", NETWORKS)
def test_as_the_processor_has_them(name, monkeypatch):
    want = run(NETWORKS[name], "cpu")
    np.testing.assert_array_equal(run(NETWORKS[name], "gpu"), want)
    sources_for_host(monkeypatch)
    ptx = run(NETWORKS[name], "gpu", gpu=Where("gpu", gpu="sm_80").described_gpu(None))
    np.testing.assert_array_equal(ptx, want)
    with np.errstate(over="ignore"):
        halves = VALUES.astype(np.float16).astype(np.float32)
    if name == "there and back":
        np.testing.assert_array_equal(want, halves)
        assert np.isinf(want[:1]).all()
        assert want[1] == np.float32(0.33374023)
