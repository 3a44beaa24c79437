"""Products by weights of few bits in blocks: onnxruntime's results, and forms that it alone has."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from vdla.analysis.ort import ort_run
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.reference import evaluate

F = np.float32
COUNT, DEPTH, SIZE = 6, 40, 16  # the last block isn't whole
BLOCKS = 3


def model(bits, shape, zeros=None, bias=False, order=False):
    rng = np.random.default_rng(bits)
    constants = {
        "b": rng.integers(0, 256, (COUNT, BLOCKS, SIZE * bits // 8)).astype(np.uint8),
        "s": rng.choice([0.25, -0.5, 1], (COUNT, BLOCKS)).astype(F),
    }
    inputs = ["x", "b", "s"]
    if zeros == "packed":
        constants["z"] = rng.integers(0, 256, (COUNT, -(-BLOCKS * bits // 8))).astype(np.uint8)
    elif zeros == "floats":
        constants["z"] = rng.integers(0, 1 << bits, (COUNT, BLOCKS)).astype(F)
    if order:
        constants["g"] = (np.arange(DEPTH) // SIZE).astype(np.int32)
    if bias:
        constants["c"] = rng.integers(-9, 9, COUNT).astype(F)
    inputs += ["z" if zeros else "", "g" if order else "", "c" if bias else ""]
    node = helper.make_node(
        "MatMulNBits", inputs, ["y"], "it", domain="com.microsoft", K=DEPTH, N=COUNT, bits=bits,
        block_size=SIZE,
    )  # fmt: skip
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in (("x", shape), ("y", (*shape[:-1], COUNT)))]  # fmt: skip
    weights = [numpy_helper.from_array(a, n) for n, a in constants.items()]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], weights)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("shape", [(3, DEPTH), (2, 5, DEPTH)])
@pytest.mark.parametrize("zeros", [None, "packed", "floats"])
@pytest.mark.parametrize("bias", [False, True])
def test_results_are_onnxruntimes(bits, shape, zeros, bias):
    if (bits, zeros) == (8, "floats"):
        pytest.skip("onnxruntime has no such zero points of 8 bits")
    proto = model(bits, shape, zeros, bias)
    x = {"x": np.random.default_rng(1).integers(-8, 8, shape).astype(F) / 4}
    graph = import_model(proto)
    assert not any(isinstance(node, ops.External) for node in graph.nodes)
    (want,) = ort_run(proto, x, fuse=False).values()
    np.testing.assert_allclose(evaluate(graph, x)[graph.outputs[0]], want, rtol=1e-5, atol=1e-3)


def test_blocks_in_another_order_are_left_to_onnxruntime():
    graph = import_model(model(4, (3, DEPTH), order=True))
    assert [type(node) for node in graph.nodes] == [ops.External]
