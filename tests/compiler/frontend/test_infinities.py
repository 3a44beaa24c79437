"""Operators that take a largest element out, of rows with infinities, as masks write them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.reference import evaluate
from vdla.isa.config import load_config
from vdla.runtime.devices.cpu import CpuDevice
from vdla.runtime.executor import Executor

INF = np.inf
ROWS = np.array(
    [
        [-INF, -INF, -INF],
        [INF, 1, -INF],
        [-INF, 2, 3],
        [INF, INF, 0],
        [-INF, -INF, 5],
        [np.nan, 1, 2],
    ]
)
EXPECTED = [-INF, INF, 3 + np.log1p(np.exp(-1)), INF, 5, np.nan]


def model(kind, opset, dtype="float32", **attributes):
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    axes = [numpy_helper.from_array(np.array([1]), "axes")] if kind.startswith("Reduce") else []
    late = opset >= 18 and bool(axes)
    if axes and not late:
        attributes["axes"] = [1]
    node = helper.make_node(kind, ["x", "axes"] if late else ["x"], ["y"], **attributes)
    keep = attributes.get("keepdims", 1)
    shape = ROWS.shape if not axes else (len(ROWS), 1) if keep else (len(ROWS),)
    ends = [helper.make_tensor_value_info(n, code, s) for n, s in (("x", ROWS.shape), ("y", shape))]
    graph = helper.make_graph([node], "rows", ends[:1], ends[1:], axes if late else [])
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def results(proto, rows):
    """What numpy, the processor and a GPU's kernels give."""
    graph = import_model(proto)
    yield evaluate(graph, {"x": rows})[graph.outputs[0]]
    for device in ("cpu", "gpu"):
        module = compile_graph(graph, load_config("tiny"), Options(device=device))
        yield Executor(module, CpuDevice(device)).run({"x": rows}).outputs["y"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("opset", [13, 18])
def test_log_sum_exp(opset, keep, dtype):
    rows = ROWS.astype(dtype)
    for value in results(model("ReduceLogSumExp", opset, dtype, keepdims=keep), rows):
        assert value.dtype == dtype
        np.testing.assert_allclose(value.reshape(-1), EXPECTED, rtol=1e-3, equal_nan=True)


@pytest.mark.parametrize("kind", ["Softmax", "LogSoftmax", "ReduceLogSum", "ReduceL2", "ReduceMax"])
def test_others_are_as_onnxruntime_has_them(kind):
    rows = np.abs(ROWS) if kind == "ReduceLogSum" else ROWS
    rows = rows.astype(np.float32)
    proto = model(kind, 13, **({"axis": 1} if kind.endswith("Softmax") else {}))
    (want,) = ort_run(proto, {"x": rows}).values()
    for value in results(proto, rows):
        np.testing.assert_allclose(value, want, rtol=1e-5, equal_nan=True)
