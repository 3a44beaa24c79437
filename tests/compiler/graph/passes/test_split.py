"""Layers that one int8 product isn't enough for: integers alone, with onnxruntime's results in
every bit, since all scales are powers of two."""

from __future__ import annotations

import numpy as np
import pytest
from exact_layers import IMAGE, ROWS, F, X, floats, integers_of, weights
from qdq import QdqModel

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.passes import optimize
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.devices.sim import SimDevice
from vdla.runtime.executor import Executor

RNG = np.random.default_rng(4)


def unsigned(shape):
    """Weights of any bytes, the least and the greatest among them."""
    integers = RNG.integers(0, 256, shape).astype(np.uint8)
    integers.flat[[0, -1]] = 0, 255
    return integers


def convolution(integers, scale, zero, *, dtype="int8", end="Relu", groups=1, biased=False):
    """A convolution with such weights."""
    m = QdqModel(dtype=dtype)
    shape = integers.shape
    operands = [m.input("x", IMAGE, 2.0**-4), weights(m, shape, scale, zero, integers)]
    if biased:
        operands.append(floats(m, shape[0]))
    result = (1, shape[0], *IMAGE[2:])
    pads = [shape[2] // 2] * 4
    y = m.node("Conv", operands, result, pads=pads, group=groups)
    if end:
        y = m.node(end, [y], result, **({"alpha": 0.25} if end == "LeakyRelu" else {}))
    m.output(m.quantized(y, 2.0**-1, 4 if end == "LeakyRelu" else -128 if dtype == "int8" else 0))
    return m


ONE = 2.0**-7
EACH = 2.0 ** -np.resize([6, 7, 8], 16)
ZEROS = {"low": 0, "high": 255, "between": 100, "each": np.resize([0, 128, 255, 127], 16)}


@pytest.mark.parametrize("zero", ZEROS)
@pytest.mark.parametrize("scale", [ONE, EACH], ids=["one scale", "scales"])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("groups", [1, 4, 16])
def test_weights_beyond_int8(zero, scale, dtype, groups):
    """Asymmetric ones by power-of-two scales, by channel or not, in layers of groups, too."""
    zero = ZEROS[zero]
    scale = np.broadcast_to(scale, 16) if np.ndim(zero) else scale
    integers = unsigned((16, 16 // groups, 3, 3))
    graph = integers_of(convolution(integers, scale, zero, dtype=dtype, groups=groups))
    kinds = [node.op for node in graph.nodes]
    assert kinds.count("QConv2d") == kinds.count("QConcat") == 1


def test_weights_within_int8_stay_one_product():
    graph = integers_of(convolution(unsigned((16, 16, 3, 3)), ONE, 128))
    assert "QConcat" not in [node.op for node in graph.nodes]


@pytest.mark.parametrize("image", [False, True])
def test_dense_weights_beyond_int8(image):
    m = QdqModel()
    x = m.input("x", IMAGE if image else ROWS, 2.0**-4)
    x = m.node("Flatten", [x], (1, 576)) if image else x
    count = m.shapes[x][-1]
    y = m.node("Transpose", [weights(m, (12, count), ONE, 90, unsigned((12, count)))], (count, 12))
    y = m.node("MatMul", [x, y], (*m.shapes[x][:-1], 12))
    m.output(m.quantized(y, 1.0 if image else 0.5, 4))
    integers_of(m)


def test_only_blocks_of_channels_whose_weights_need_it_are_repeated():
    m = QdqModel()
    shape = 1, 48, 6, 6
    integers = RNG.integers(0, 200, (8, 48, 1, 1)).astype(np.uint8)
    integers[3, 20] = 255
    operands = m.input("x", shape, 2.0**-4), weights(m, integers.shape, ONE, 100, integers)
    y = m.node("Conv", operands, (1, 8, 6, 6))
    m.output(m.quantized(y, 2.0**-1, 4))
    graph = integers_of(m, np.resize(X[IMAGE], shape))
    (layer,) = graph.of(ops.QConv2d)
    assert graph.tensors[layer.weight].shape == (8, 64, 1, 1)


@pytest.mark.parametrize("end", ["Relu", "LeakyRelu"])
def test_a_pool_between_stays_one_of_integers(end):
    m = QdqModel()
    x = m.node("MaxPool", [m.input("x", IMAGE, 2.0**-4)], (1, 16, 5, 5), kernel_shape=[2, 2])
    y = m.node("Conv", [x, weights(m, (16, 16, 1, 1), ONE, 9, unsigned((16, 16, 1, 1)))],
               (1, 16, 5, 5))  # fmt: skip
    y = m.node(end, [y], (1, 16, 5, 5))
    m.output(m.quantized(y, 2.0**-1, -100))
    proto = m.model()
    kinds = [node.op for node in optimize(import_model(proto)).nodes]
    assert all(kind.startswith("Q") or kind == "Dequantize" for kind in kinds)


@pytest.mark.parametrize("scale", [ONE, EACH], ids=["one scale", "scales"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("beyond", [False, True])
def test_a_leaky_function_that_nothing_quantizes(scale, biased, beyond):
    zero = 77 if beyond else 128
    m = convolution(unsigned((16, 16, 3, 3)), scale, zero, end="LeakyRelu", biased=biased)
    graph = integers_of(m)
    assert sum(node.op == "QMaximum" for node in graph.nodes) == 1


def test_a_negative_slope_stays_a_function_of_floats():
    m = convolution(unsigned((16, 16, 1, 1)), ONE, 128, end="LeakyRelu")
    next(n for n in m.nodes if n.op_type == "LeakyRelu").attribute[0].f = -0.5
    assert "Unary" in [node.op for node in optimize(import_model(m.model())).nodes]


@pytest.mark.parametrize("target", ["cpu", "vdla"])
def test_both_on_devices(target):
    proto = convolution(unsigned((16, 16, 3, 3)), EACH, ZEROS["each"], end="LeakyRelu").model()
    config, quick = load_config("tiny"), Processor(quick=True)
    options = Options("cpu", processor=quick) if target == "cpu" else Options(processor=quick)
    module = compile_graph(import_model(proto), config, options)
    device = None if target == "cpu" else SimDevice(config)
    (got,) = Executor(module, *([device] if device else [])).run({"x": X[IMAGE]}).outputs.values()
    (want,) = ort_run(proto, {"x": X[IMAGE]}, fuse=False).values()
    np.testing.assert_array_equal(got, want)
    assert want.dtype == F
