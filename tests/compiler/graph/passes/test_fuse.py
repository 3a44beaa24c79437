"""The passes from float islands to integer operators, each by what it makes of a small model."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx
import pytest
from onnx import helper
from qdq import QdqModel

from vdla.analysis.layers import layer_differences
from vdla.analysis.ort import ort_run, ort_tensors
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.passes import (
    FIRST,
    PIPELINE,
    fold,
    fuse_integer,
    fuse_qdq,
    move_qdq,
    optimize,
    to_int8,
)
from vdla.compiler.graph.printer import format_graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.window import Window


def kinds(graph):
    return [n.op for n in graph.nodes]


def imported(build, dtype="int8", seed=0):
    m = QdqModel(seed, dtype)
    m.output(build(m))
    return import_model(m.model())


def optimized(build, dtype="int8", seed=0):
    return optimize(imported(build, dtype, seed))


def same_values(before, after, seed=0, atol=0.0):
    rng = np.random.default_rng(seed)
    x = {n: rng.standard_normal(before.tensors[n].shape).astype(np.float32) for n in before.inputs}
    a, b = evaluate(before, x), evaluate(after, x)
    for p, q in zip(before.outputs, after.outputs, strict=True):
        np.testing.assert_allclose(a[p], b[q], atol=atol)


def conv_block(m):
    return m.conv(m.input("x", (1, 8, 6, 6)), 8, Window.square(3), activation="Relu")


def residual_block(m):
    x = m.input("x", (1, 8, 6, 6))
    a = m.conv(x, 8, Window.square(3))
    b = m.conv(x, 8, 1)
    return m.add(a, b, "Relu")


@pytest.mark.parametrize("op", ["Mul", "Sub", "Add", "Min", "Max"])
@pytest.mark.parametrize(
    "second", [(2, 8, 6, 5), (2, 8, 1, 1), (2, 8, 6, 1), (2, 8, 1, 5)], ids=str
)
def test_two_tensors_equal_onnxruntime(op, second):
    """Operands of two scales; the second is spread where it has fewer rows or columns."""
    m = QdqModel(4)
    first = m.max_pool(m.input("x", (2, 8, 6, 5)), 1, 1)
    other = m.max_pool(m.input("z", second), 1, 1)
    m.output(m.binary(op, first, other, 117.3 if op == "Mul" else 1.73))
    model = m.model()
    graph = optimize(import_model(model))
    rng = np.random.default_rng(1)
    x = {n: rng.normal(0, 2, graph.tensors[n].shape).astype(np.float32) for n in graph.inputs}
    assert {"QTake"} & {*kinds(graph)} == (
        set() if second in ((2, 8, 6, 5), *([(2, 8, 1, 1)] if op == "Mul" else [])) else {"QTake"}
    )
    (want,) = ort_run(model, x, fuse=False).values()
    got = evaluate(graph, x)[graph.outputs[0]]
    step = graph.nodes[-1].scale[0]
    apart = np.rint(np.abs(got - want) / step)
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= 2


def test_a_gate_is_either_operand():
    for order in ("xz", "zx"):
        m = QdqModel(5)
        images = {"x": (1, 8, 6, 5), "z": (1, 8, 1, 1)}
        data = {n: m.max_pool(m.input(n, images[n]), 1, 1) for n in "xz"}
        y = m.node("Mul", [data[n] for n in order], images["x"])
        m.output(m.quantized(y, 0.3))
        graph = optimize(import_model(m.model()))
        node = next(n for n in graph.nodes if n.op == "QMultiply")
        assert [graph.tensors[n].shape for n in node.inputs] == [images["x"], images["z"]]


def test_channels_are_not_repeated():
    m = QdqModel(6)
    data = m.max_pool(m.input("x", (1, 8, 6, 5)), 1, 1)
    mask = m.max_pool(m.input("z", (1, 1, 6, 5)), 1, 1)
    m.output(m.binary("Mul", data, mask, 120))
    graph = optimize(import_model(m.model()))
    node = next(n for n in graph.nodes if n.op == "Binary")
    assert graph.reasons[node.name] == "operands of shapes [1, 8, 6, 5] and [1, 1, 6, 5]"


def test_convolution_island():
    graph = optimized(conv_block)
    assert kinds(graph) == ["Quantize", "QConv2d", "Dequantize"]
    node = graph.nodes[1]
    assert node.requant.low == node.requant.zero
    assert node.requant.high == 127
    assert graph.tensors[node.output].quant.zero_point == node.requant.zero


def test_scale_is_computed_in_float32_in_order():
    before = imported(conv_block)
    dq = {n.output: n for n in before.nodes if isinstance(n, ops.Dequantize)}
    conv = next(n for n in before.nodes if isinstance(n, ops.Conv2d))
    out = before.nodes[-1]
    x_scale = np.float32(dq[conv.data].scale[0])
    w_scale = np.array(dq[conv.weight].scale, np.float32)
    want = x_scale * w_scale / np.float32(out.scale[0])
    assert optimize(before).nodes[1].requant.scale == tuple(float(s) for s in want)


def test_clip_bounds_become_integers():
    graph = optimized(lambda m: m.conv(m.input("x", (1, 4, 5, 5)), 4, 1, activation=(0.0, 6.0)))
    node = graph.nodes[1]
    quant = graph.tensors[node.output].quant
    assert node.requant.low == quant.zero_point
    assert node.requant.high == min(127, round(6 / np.float32(quant.scale)) + quant.zero_point)


def test_uint8_is_int8_moved_by_128():
    a, b = optimized(conv_block, "int8"), optimized(conv_block, "uint8")
    assert kinds(a) == kinds(b)
    assert {t.dtype for t in b.tensors.values()} == {"float32", "int8", "int32"}
    assert a.nodes[1].zeros == b.nodes[1].zeros


def test_residual_fuses_into_the_later_convolution():
    graph = optimized(residual_block)
    assert kinds(graph) == ["Quantize", "QConv2d", "QConv2d+Add", "Dequantize"]
    assert graph.nodes[2].epilogue[0].addend == graph.nodes[1].output


def test_residual_fusion_is_exact():
    unfused = [each for each in PIPELINE if each.name != "fuse_residual"]
    before = imported(residual_block)
    plain = optimize(before, tuple(unfused))
    assert "QAdd" in kinds(plain)
    same_values(plain, optimize(before))


def test_residual_keeps_a_convolution_with_another_use():
    def build(m):
        a = m.conv(m.input("x", (1, 8, 6, 6)), 8, 1)
        return m.conv(m.add(a, a), 8, 1)

    assert kinds(optimized(build)) == ["Quantize", "QConv2d", "QAdd", "QConv2d", "Dequantize"]


def relu_behind_a_quantization(same):
    """Conv → Q → DQ → Relu → Q, as PyTorch exports it; the second Q may have other parameters."""
    m = QdqModel(3)
    x = m.conv(m.input("x", (1, 8, 6, 6)), 8, 1)
    y = m.node("Relu", [x], (1, 8, 6, 6))
    if same:
        m.output(m.same_quant(x, y))
    else:
        m.output(m.quantized(y, m.scales[x] / 2))
    return import_model(m.model())


def test_a_relu_behind_a_quantization_becomes_the_convolutions_clip():
    before = relu_behind_a_quantization(same=True)
    graph = optimize(before)
    assert kinds(graph) == ["Quantize", "QConv2d", "Dequantize"]
    requant = graph.nodes[1].requant
    assert requant.low == requant.zero
    unfused = tuple(each for each in PIPELINE if each.name != "fuse_clip")
    assert "QClip" in kinds(optimize(before, unfused))
    same_values(optimize(before, unfused), graph)


def test_a_relu_that_changes_the_scale_stays():
    graph = optimize(relu_behind_a_quantization(same=False))
    assert kinds(graph) == ["Quantize", "QConv2d", "QClip", "Dequantize"]


def test_pools_move_into_the_integers():
    def build(m):
        return m.max_pool(m.input("x", (1, 8, 6, 6)), 3, 2, (1, 1, 1, 1))

    graph = optimized(build)
    assert kinds(graph) == ["Quantize", "QMaxPool", "Dequantize"]


def float_pool_model(order):
    """x → Q → DQ → the operators of ``order`` → Q → DQ, with other parameters at the end."""
    m = QdqModel(2)
    x = m.input("x", (1, 4, 6, 6))
    for op in order:
        if op == "MaxPool":
            x = m.node(op, [x], (1, 4, 3, 3), kernel_shape=[2, 2], strides=[2, 2])
        else:
            x = m.node(op, [x], m.shapes[x])
    m.output(m.quantized(x, 0.031))
    return m.model()


@pytest.mark.parametrize(
    ("order", "result"),
    [
        (["MaxPool"], ["Quantize", "QMaxPool", "QClip", "Dequantize"]),
        (["MaxPool", "Relu"], ["Quantize", "QMaxPool", "QClip", "Dequantize"]),
        (["Relu", "MaxPool"], ["Quantize", "QClip", "QMaxPool", "Dequantize"]),
        (["Relu"], ["Quantize", "QClip", "Dequantize"]),
        (["Sigmoid"], None),
    ],
)
def test_change_of_scale(order, result):
    proto = float_pool_model([o for o in order if o != "Sigmoid"])
    graph = optimize(import_model(proto))
    if result:
        assert kinds(graph) == result
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    (want,) = ort_run(proto, {"x": x}).values()
    got = evaluate(graph, {"x": x})[graph.outputs[0]]
    assert np.abs(got - want).max() <= 0.0311


def test_pool_between_convolution_and_quantize():
    """Conv → Relu → MaxPool → Q: the Quantize moves up to the convolution."""
    m = QdqModel(1)
    x = m.input("x", (1, 8, 6, 6))
    w, _ = m.weight("w", (8, 8, 1, 1))
    y = m.node("Conv", [x, w], (1, 8, 6, 6))
    y = m.node("Relu", [y], (1, 8, 6, 6))
    y = m.node("MaxPool", [y], (1, 8, 3, 3), kernel_shape=[2, 2], strides=[2, 2])
    m.output(m.quantized(y, 0.1))
    graph = optimize(import_model(m.model()))
    assert kinds(graph) == ["Quantize", "QConv2d", "QMaxPool", "Dequantize"]


def test_flatten_of_a_pooled_image_disappears():
    def build(m):
        return m.dense(m.flatten(m.global_pool(m.input("x", (1, 8, 6, 6)))), 5)

    graph = optimized(build)
    assert kinds(graph) == ["Quantize", "QAvgPool", "QDense", "Dequantize"]
    assert graph.tensors[graph.nodes[2].data].shape == (1, 8, 1, 1)


def test_flatten_of_an_image_stays():
    def build(m):
        return m.dense(m.flatten(m.input("x", (1, 8, 2, 2))), 5)

    assert kinds(optimized(build)) == ["Quantize", "QReshape", "QDense", "Dequantize"]


def squeeze(m, middle):
    """A factor for each channel by two dense layers, and what stands between them."""
    x = m.conv(m.input("x", (2, 8, 6, 6)), 8, 3)
    y = m.dense(middle(m, m.dense(m.flatten(m.global_pool(x)), 3)), 8)
    pixel = m.node("Reshape", [y, m.constant("whole", np.array([2, 8, 1, 1]))], (2, 8, 1, 1))
    return m.binary("Mul", x, m.same_quant(y, pixel), 0.4)


def test_dense_layers_between_pixels_are_convolutions():
    for middle in (lambda m, y: y, QdqModel.relu):
        build = partial(squeeze, middle=middle)
        graph = optimized(build)
        assert not [node for node in graph.nodes if node.op in ("QReshape", "QDense")]
        assert [graph.tensors[node.output].shape for node in graph.of(ops.QConv2d)][1:] == [
            (2, 3, 1, 1), (2, 8, 1, 1),
        ]  # fmt: skip
        plain = tuple(each for each in PIPELINE if each.name != "fold_flatten")
        same_values(optimize(imported(build), plain), graph, atol=0.0)


def test_dense_layers_with_a_sum_behind_them_stay():
    def build(m):
        x = m.input("x", (2, 8))
        y = m.add(m.dense(x, 8), m.dense(x, 8))
        pixel = m.node("Reshape", [y, m.constant("whole", np.array([2, 8, 1, 1]))], (2, 8, 1, 1))
        return m.conv(m.same_quant(y, pixel), 4, 1)

    assert kinds(optimized(build))[1:4] == ["QDense", "QDense", "QAdd"]
    same_values(imported(build), optimized(build), atol=0.1)


def test_a_dense_layer_that_others_read_stays():
    def build(m):
        y = m.dense(m.input("x", (2, 8)), 8)
        pixel = m.node("Reshape", [y, m.constant("whole", np.array([2, 8, 1, 1]))], (2, 8, 1, 1))
        m.output(m.dense(y, 3))
        return m.conv(m.same_quant(y, pixel), 4, 1)

    assert kinds(optimized(build)).count("QDense") == 2
    same_values(imported(build), optimized(build), atol=0.1)


def test_an_upsampling_moves_into_the_integers():
    """On either side of it stands a convolution; a padding's zeros are zero points."""

    def build(m):
        return m.conv(m.upsample(m.conv(m.input("x", (1, 8, 3, 4)), 8, 1), 2, 3), 8, 1)

    graph = optimized(build)
    assert kinds(graph) == ["Quantize", "QConv2d", "QTake", "QConv2d", "Dequantize"]
    assert graph.tensors[graph.nodes[2].output].shape == (1, 8, 6, 12)

    def padded(m):
        pads = m.constant("pads", np.array([0, 0, 1, 0, 0, 0, 0, 1]))
        y = m.node("Pad", [m.conv(m.input("x", (1, 8, 3, 4)), 8, 1), pads], (1, 8, 4, 5))
        return m.conv(m.quantized(y, 0.1), 8, 1)

    assert "QTake" in kinds(optimized(padded))  # the zero point, with which 0 is exact
    same_values(imported(padded), optimized(padded), atol=1e-5)


def test_gemm_without_transposition():
    def build(m):
        return m.dense(m.input("x", (2, 6)), 5, transposed=False)

    assert kinds(optimized(build)) == ["Quantize", "QDense", "Dequantize"]


def test_float_output_stays_float():
    m = QdqModel(0)
    x = m.input("x", (1, 4, 3, 3))
    w, _ = m.weight("w", (4, 4, 1, 1))
    m.output(m.node("Conv", [x, w], (1, 4, 3, 3)))
    graph = optimize(import_model(m.model()))
    assert kinds(graph) == ["Quantize", "Dequantize", "Conv2d"]
    same_values(import_model(m.model()), graph)


def test_asymmetric_weights_fold_when_they_fit():
    m = QdqModel(0)
    x = m.input("x", (1, 4, 3, 3))
    integers = np.random.default_rng(0).integers(100, 200, (4, 4, 1, 1)).astype(np.uint8)
    names = [
        m.constant("w8", integers),
        m.constant("ws", np.float32(0.01).reshape(())),
        m.constant("wz", np.array(150, np.uint8)),
    ]
    w = m.node("DequantizeLinear", names, integers.shape)
    m.output(m.finished(m.node("Conv", [x, w], (1, 4, 3, 3)), 0.1, None))
    graph = optimize(import_model(m.model()))
    assert kinds(graph) == ["Quantize", "QConv2d", "Dequantize"]
    got = graph.constants[graph.nodes[1].weight]
    np.testing.assert_array_equal(got, integers.astype(int) - 150)
    m.weights[2].CopyFrom(onnx.numpy_helper.from_array(integers // np.uint8(10), "w8"))
    assert "QConcat" in kinds(optimize(import_model(m.model())))  # passes.split has more of them


def test_bias_in_other_units_is_rounded_to_the_accumulator():
    m = QdqModel(0)
    x = m.input("x", (1, 4, 3, 3))
    w, scales = m.weight("w", (4, 4, 1, 1))
    real = np.array([0.1, -0.2, 0.3, 4.0], np.float32)
    y = m.node("Conv", [x, w, m.constant("b", real)], (1, 4, 3, 3))
    m.output(m.finished(y, 0.1, None))
    graph = optimize(import_model(m.model()))
    units = np.float32(m.scales[x]) * scales
    np.testing.assert_array_equal(graph.constants[graph.nodes[1].bias], np.rint(real / units))


@pytest.mark.parametrize(("dtype", "zero"), [("int32", 0), ("int8", 3)])
def test_a_quantized_bias_in_other_units_is_rounded_to_the_accumulator(dtype, zero):
    m = QdqModel(0)
    x = m.input("x", (1, 4, 3, 3))
    w, scales = m.weight("w", (4, 4, 1, 1))
    integers = np.array([5, -7, 60, 100], dtype)
    b = m.constant("b", integers)
    ends = [m.constant("bs", np.array(0.03, np.float32)), m.constant("bz", np.array(zero, dtype))]
    y = m.node("Conv", [x, w, m.node("DequantizeLinear", [b, *ends], (4,))], (1, 4, 3, 3))
    m.output(m.finished(y, 0.1, None))
    graph = optimize(import_model(m.model()))
    real = np.float64(np.float32(0.03)) * (integers.astype(np.int64) - zero)
    units = np.float32(m.scales[x]) * scales
    np.testing.assert_array_equal(graph.constants[graph.nodes[1].bias], np.rint(real / units))


def test_duplicates_merge():
    m = QdqModel(0)
    x = m.input("x", (1, 4, 3, 3))
    y = m.node("Relu", [x], (1, 4, 3, 3))
    one, two = m.quantized(y, 0.1, 3), m.node("Relu", [x], (1, 4, 3, 3))
    two = m.quantized(two, 0.1, 3)
    m.output(m.finished(m.node("Add", [one, two], (1, 4, 3, 3)), 0.2, None))
    graph = optimize(import_model(m.model()))
    assert kinds(graph) == ["Quantize", "QClip", "QAdd", "Dequantize"]
    assert graph.nodes[2].a == graph.nodes[2].b


def test_a_constant_operand_of_an_addition_is_spread():
    m = QdqModel(0)
    x = m.input("x", (1, 4, 3, 3))
    c = m.constant("c", np.arange(4, dtype=np.int8).reshape(4, 1, 1))
    names = [c, m.constant("cs", np.array(0.1, np.float32)), m.constant("cz", np.array(0, np.int8))]
    y = m.node("Add", [x, m.node("DequantizeLinear", names, (4, 1, 1))], (1, 4, 3, 3))
    m.output(m.finished(y, 0.2, None))
    graph = optimize(import_model(m.model()))
    assert kinds(graph) == ["Quantize", "QAdd", "Dequantize"]
    assert graph.tensors[graph.nodes[1].b].shape == (1, 4, 3, 3)


@pytest.mark.parametrize("scales", [(0.1, 0.1, 0.1), (0.05, 0.13, 0.07)])
def test_a_minimum_of_integers(scales):
    """Equal to onnxruntime's, at one scale and at three that give no ties."""
    m = QdqModel(0)
    a, b = (m.input(n, (1, 4, 5, 6), s) for n, s in zip("ab", scales[:2], strict=True))
    m.output(m.finished(m.node("Min", [a, b], (1, 4, 5, 6)), scales[2], None))
    model = m.model()
    graph = optimize(import_model(model))
    assert kinds(graph) == ["Quantize", "Quantize", "QMinimum", "Dequantize"]
    rng = np.random.default_rng(1)
    values = {n: rng.uniform(-9, 9, (1, 4, 5, 6)).astype(np.float32) for n in graph.inputs}
    (name,) = graph.outputs
    want = ort_run(model, values)[name]
    np.testing.assert_allclose(evaluate(graph, values)[name], want, atol=1e-6)


def test_functions_without_an_integer_form_say_so():
    m = QdqModel(0)
    a, b = m.input("a", (1, 4)), m.input("b", (1, 4))
    m.output(m.finished(m.node("Div", [a, b], (1, 4)), 0.2, None))
    graph = optimize(import_model(m.model()))
    assert "it has no integer form" in graph.reasons.values()


def test_a_scale_out_of_range_stays_float():
    m = QdqModel(0)
    x = m.input("x", (1, 4, 3, 3), 1e6)
    m.output(m.finished(m.node("Relu", [x], (1, 4, 3, 3)), 1e-6, None))
    found = kinds(optimize(import_model(m.model())))
    assert found == ["Quantize", "Dequantize", "Relu", "Quantize", "Dequantize"]


def conv1d(per_channel, groups):
    """A quantized convolution of rows, which is imported as one of images of one row."""
    rng, node = np.random.default_rng(7), onnx.helper.make_node
    scale = (rng.random(16) / 99 + 0.005).astype(np.float32) if per_channel else np.float32(0.01)
    values = {
        "w": rng.integers(-127, 127, (16, 8 // groups, 5)).astype(np.int8), "sw": scale,
        "zw": np.zeros_like(scale, np.int8), "sx": np.float32(0.03), "z": np.int8(3),
        "sy": np.float32(0.2), "b": np.ones(16, np.float32),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "sx", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "sx", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0),
        node("Conv", ["xd", "wd", "b"], ["t"], name="conv", pads=[2, 2], group=groups),
        node("QuantizeLinear", ["t", "sy", "z"], ["tq"], name="end"),
        node("DequantizeLinear", ["tq", "sy", "z"], ["y"]),
    ]
    ends = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in
            (("x", [1, 8, 40]), ("y", [1, 16, 40]))]  # fmt: skip
    weights = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in values.items()]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_convolution_of_rows_is_one_of_integers(per_channel, groups):
    """With its bias; a reshape between weights and convolution is one of constants."""
    proto = conv1d(per_channel, groups)
    before, after = import_model(proto), optimize(import_model(proto))
    assert [n.op for n in after.nodes if "Conv" in n.op] == ["QConv2d"]
    x = {"x": np.random.default_rng(1).standard_normal((1, 8, 40)).astype(np.float32)}
    (want,) = ort_run(proto, x).values()
    np.testing.assert_allclose(evaluate(verify(after), x)["y"], want, atol=1e-6)
    same_values(before, after, atol=1e-6)


def test_reasons_name_the_operand_that_is_not_quantized():
    """Of an addition of floats; a Quantize has no reason."""
    m = QdqModel(3)
    other = m.constant("other", np.ones((1, 8, 6, 6), np.float32))
    m.output(m.quantized(m.node("Add", [m.input("x", (1, 8, 6, 6)), other], (1, 8, 6, 6)), 0.1))
    (reason,) = optimize(import_model(m.model())).reasons.values()
    assert (
        reason == "expected operands of int8 with one scale, found other, which nothing quantizes"
    )


def test_every_pass_keeps_the_meaning():
    def build(m):
        x = m.input("x", (1, 8, 8, 8))
        y = m.max_pool(m.conv(x, 8, Window.square(3), activation="Relu"), 2, 2)
        z = m.add(m.conv(y, 8, 1), y, "Relu")
        return m.dense(m.flatten(m.global_pool(m.concat([z, y]))), 4)

    graph = imported(build, "uint8", 4)
    step = max(n.scale[0] for n in graph.nodes if isinstance(n, ops.Dequantize))
    for each in PIPELINE:
        after = verify(each.run(graph))
        same_values(graph, after, atol=3 * step if each.name == "fuse_qdq" else 0.0)
        graph = after


def test_dump_gets_the_graph_after_every_pass():
    seen = []
    optimize(imported(conv_block), dump=lambda name, graph: seen.append((name, graph)))
    assert [n for n, _ in seen] == ["imported", *(each.name for each in (*FIRST, *PIPELINE))]
    assert "QConv2d(" in format_graph(seen[-1][1])


def test_printed_graph():
    text = format_graph(optimized(conv_block), {"conv4": "vdla"})
    lines = text.splitlines()
    assert lines[0] == "graph model"
    assert lines[1] == "  input x : float32[1, 8, 6, 6]"
    assert lines[2] == "  constant conv2.weight : int8[8, 8, 3, 3]"
    (line,) = (line for line in lines if line.startswith("  conv4: "))
    assert "= QConv2d(quantizelinear0, conv2.weight, conv2.bias) strides=(1, 1)" in line
    assert line.endswith("  # on vdla")


def test_passes_document_before_and_after():
    for function in (to_int8.to_int8, move_qdq.move_qdq, fuse_qdq.fuse_qdq, fuse_integer.fuse_clip,
                     fuse_integer.fuse_residual, fold.fold_scales, fold.merge_duplicates,
                     fold.fold_constants, fold.fold_flatten):  # fmt: skip
        assert "before:" in function.__doc__
        assert "after:" in function.__doc__


@pytest.mark.parametrize("seed", range(6))
def test_a_normalization_of_integers(seed):
    """One that follows no convolution: as onnxruntime has it, but for its float32's ties."""

    def build(m):
        m.rng = np.random.default_rng(seed)
        x = m.input("x", (2, 24, 5, 7))
        values = m.rng.normal(0, 1, 24), m.rng.normal(0, 1, 24), m.rng.normal(0, 0.3, 24)
        parts = [*values, m.rng.uniform(0.01, 3, 24)]
        names = [m.constant(f"p{n}", v.astype(np.float32)) for n, v in enumerate(parts)]
        y = m.node("BatchNormalization", [x, *names], (2, 24, 5, 7))
        m.output(m.finished(y, 0.05, "Relu" if seed % 2 else None))

    m = QdqModel(seed, "uint8")
    build(m)
    graph = optimize(import_model(m.model()))
    assert [n.op for n in graph.nodes if n.op not in ("Quantize", "Dequantize")] == ["QBatchNorm"]
    x = np.random.default_rng(seed).normal(0, 3, (2, 24, 5, 7)).astype(np.float32)
    (layer,) = layer_differences(graph, ort_tensors(m.model(), {"x": x}))
    assert layer.share == 0
    assert layer.largest <= 1


@pytest.mark.parametrize("include", [0, 1])
@pytest.mark.parametrize(("kernel", "pads"), [((3, 3), 1), ((5, 3), 1), ((7, 7), 3)])
def test_averages_of_any_divisor(include, kernel, pads):
    """As onnxruntime has them, but for its float32's ties."""
    m = QdqModel(3, "uint8")
    x = m.input("x", (2, 8, 12, 10))
    shape = 2, 8, 12 + 2 * pads - kernel[0] + 1, 10 + 2 * pads - kernel[1] + 1
    y = m.node(
        "AveragePool", [x], shape, kernel_shape=kernel, pads=[pads] * 4, count_include_pad=include
    )
    m.output(m.finished(y, 0.013, None))
    graph = optimize(import_model(m.model()))
    data = np.random.default_rng(1).normal(0, 2, (2, 8, 12, 10)).astype(np.float32)
    (layer,) = layer_differences(graph, ort_tensors(m.model(), {"x": data}))
    assert layer.op == "QAvgPool"
    assert layer.share == 0
    assert layer.largest <= 1


def test_averages_whose_divisors_have_a_large_multiple_stay_float():
    m = QdqModel(3)
    x = m.input("x", (1, 8, 30, 30))
    y = m.node("AveragePool", [x], (1, 8, 30, 30), kernel_shape=[17, 17], pads=[8] * 4)
    m.output(m.finished(y, 0.013, None))
    graph = optimize(import_model(m.model()))
    (pool,) = [node for node in graph.nodes if isinstance(node, ops.AvgPool)]
    assert (
        "expected divisors whose least common multiple is at most 8,388,608"
        in (graph.reasons[pool.name])
    )


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("factors", [(2, 2), (3, 1), (2, 4)])
def test_bilinear_resizes(mode, factors):
    """As onnxruntime has them, but for its float32's ties."""
    m = QdqModel(3, "uint8")
    x = m.input("x", (2, 8, 7, 5))
    scales = m.constant("scales", np.array([1, 1, *factors], np.float32))
    shape = 2, 8, 7 * factors[0], 5 * factors[1]
    resize = {"mode": "linear", "coordinate_transformation_mode": mode}
    m.output(m.finished(m.node("Resize", [x, "", scales], shape, **resize), 0.033, None))
    graph = optimize(import_model(m.model()))
    data = np.random.default_rng(1).normal(0, 2, (2, 8, 7, 5)).astype(np.float32)
    (layer,) = layer_differences(graph, ort_tensors(m.model(), {"x": data}))
    assert layer.op == "QInterpolate"
    assert layer.share == 0
    assert layer.largest <= 1


def integers_cut():
    """An int8 input, of which a Slice between quantizations of one scale is an int8 output."""
    m = QdqModel(0)
    kind = onnx.TensorProto.INT8
    scale, zero = m.constant("s", np.float32(0.1)), m.constant("z", np.int8(3))
    bounds = [m.constant(n, np.array([v])) for n, v in (("a", 1), ("b", 3), ("c", 2))]
    m.nodes += [
        helper.make_node("DequantizeLinear", ["x", scale, zero], ["real"]),
        helper.make_node("Slice", ["real", *bounds], ["part"]),
        helper.make_node("QuantizeLinear", ["part", scale, zero], ["y"]),
    ]
    m.inputs = [helper.make_tensor_value_info("x", kind, (1, 2, 4, 3))]
    shapes = {"x": (1, 2, 4, 3), "y": (1, 2, 2, 3)}
    m.outputs = [helper.make_tensor_value_info(n, kind, shapes[n]) for n in "y"]
    return m.model()


def test_integers_that_are_moved_are_an_output_themselves():
    graph = optimize(import_model(integers_cut()))
    assert kinds(graph) == ["QTake"]
    x = np.random.default_rng(0).integers(-128, 128, (1, 2, 4, 3), np.int8)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], x[:, :, 1:3])
