"""Convolutions and pools beside LiteRT's kernels: padding, strides, scales per channel, types."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tflite_files import Graph, Op, T, file_of, known, one
from tflite_reference import compare, drawn, interpreter, litert

from vdla.analysis.ort import ort_run
from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.tflite import translate
from vdla.isa.config import load_config
from vdla.runtime import Executor

SAME, VALID = 0, 1
RNG = np.random.default_rng(7)


def weights(shape, dtype, axis):
    """Constant weights, with a scale per channel where they are integers."""
    if dtype == "float32":
        return T(shape, data=RNG.normal(size=shape))
    scales = RNG.uniform(0.002, 0.02, shape[axis])
    return T(shape, "int8", scales, axis=axis, data=RNG.integers(-127, 128, shape))


def bias(count, dtype, scale, weight):
    """A constant bias in steps of the data's times the weights'."""
    if dtype == "float32":
        return T((count,), data=RNG.normal(size=count))
    kind = "int64" if dtype == "int16" else "int32"
    steps = scale * np.atleast_1d(weight.scale)
    return T((count,), kind, steps, data=RNG.integers(-500, 500, count))


SCALES = {"float32": None, "int8": 0.02, "int16": 0.0002}
RESULTS = {"float32": None, "int8": 0.05, "int16": 0.0004}


def image(shape, dtype, scales=SCALES, zero=0):
    return T(shape, dtype, scales[dtype], zero if dtype == "int8" else 0)


def output(size, kernel, stride, dilation, padding):
    reach = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == SAME else (size - reach) // stride + 1


def conv(name, dtype, shape, kernel, *, stride=(1, 1), dilation=(1, 1), padding=SAME,
         channels=4, activation=0, zero=0, groups=1):  # fmt: skip
    """A file of one convolution; ``channels`` of the result, or of each channel."""
    depthwise = name == "DEPTHWISE_CONV_2D"
    inner = shape[3]
    outer = inner * channels if depthwise else channels
    form = (1, *kernel, outer) if depthwise else (outer, *kernel, inner // groups)
    weight = weights(form, dtype, 3 if depthwise else 0)
    sizes = [
        output(*each, padding) for each in zip(shape[1:3], kernel, stride, dilation, strict=True)
    ]
    data = image(shape, dtype, zero=zero)
    result = image((shape[0], *sizes, outer), dtype, RESULTS, zero)
    options = {
        "Padding": padding, "StrideH": stride[0], "StrideW": stride[1],
        "DilationHFactor": dilation[0], "DilationWFactor": dilation[1],
        "FusedActivationFunction": activation,
    }  # fmt: skip
    if depthwise:
        options["DepthMultiplier"] = channels
    kind = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    added = bias(outer, dtype, data.scale, weight)
    return one(name, [data, weight, added], [result], kind, **options)


@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_padding_and_strides(name, stride, padding, dtype):
    compare(conv(name, dtype, (2, 7, 6, 3), (3, 2), stride=stride, padding=padding, channels=2))


@pytest.mark.parametrize("zero", [-128, 5])
@pytest.mark.parametrize("activation", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_activations_with_zero_points(name, activation, zero):
    compare(
        conv(name, "int8", (1, 5, 5, 4), (3, 3), stride=(2, 2), activation=activation, zero=zero)
    )


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("padding", [SAME, VALID])
def test_dilations(padding, dtype):
    for name in ("CONV_2D", "DEPTHWISE_CONV_2D"):
        compare(conv(name, dtype, (1, 9, 8, 2), (3, 3), dilation=(2, 3), padding=padding))


@pytest.mark.parametrize("name", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_uint8_with_zero_points_of_weights(name):
    """TFLite's first quantized files, with one scale for all channels."""
    form, kind = ((4, 3, 3, 2), "Conv2DOptions")
    if name == "DEPTHWISE_CONV_2D":
        form, kind = (1, 3, 3, 4), "DepthwiseConv2DOptions"
    channels = 2 if name == "CONV_2D" else 4
    weight = T(form, "uint8", 0.01, 121, data=RNG.integers(0, 256, form))
    data, added = T((1, 5, 5, channels), "uint8", 0.02, 130), T((4,), "int32", 0.0002, data=[9] * 4)
    result = T((1, 3, 3, 4), "uint8", 0.05, 117)
    fields = {"DepthMultiplier": 1} if channels == 4 else {}
    compare(one(name, [data, weight, added], [result], kind, StrideH=2, StrideW=2, **fields))


def test_groups_of_a_convolution():
    compare(conv("CONV_2D", "float32", (1, 5, 5, 6), (3, 3), channels=4, groups=2))


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["CONV_2D", "DEPTHWISE_CONV_2D"]),
    st.sampled_from(["float32", "int8", "int16"]),
    st.tuples(st.integers(1, 3), st.integers(3, 9), st.integers(3, 9), st.integers(1, 5)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([SAME, VALID]),
    st.integers(-128, 127),
)
def test_any_convolution(name, dtype, shape, kernel, stride, padding, zero):
    compare(conv(name, dtype, shape, kernel, stride=stride, padding=padding, zero=zero, channels=2))


# What the passes want ----------------------------------------------------------------------------


def test_weights_stay_integers_with_a_scale_per_channel_in_front():
    model = translate(conv("DEPTHWISE_CONV_2D", "int8", (1, 5, 5, 3), (3, 3), channels=2), "m")
    (node,) = [n for n in model.graph.node if n.op_type == "Conv"]
    makers = {n.output[0]: n for n in model.graph.node}
    weight, added = (makers[name] for name in node.input[1:])
    kinds = {t.name: t for t in model.graph.initializer}
    assert weight.op_type == added.op_type == "DequantizeLinear"
    assert kinds[weight.input[0]].data_type == onnx.TensorProto.INT8
    assert list(kinds[weight.input[0]].dims) == [6, 1, 3, 3]
    assert list(kinds[weight.input[1]].dims) == [6]
    assert [a.i for a in weight.attribute if a.name == "axis"] == [0]
    assert kinds[added.input[0]].data_type == onnx.TensorProto.INT32


def test_int8_weights_of_floats_become_floats():
    """LiteRT quantizes the data as it runs, to 1/127 of the largest."""
    weight = weights((4, 3, 3, 2), "int8", 0)
    data, added = T((1, 5, 5, 2)), T((4,), data=np.ones(4))
    model = translate(one("CONV_2D", [data, weight, added], [T((1, 5, 5, 4))], "Conv2DOptions",
                          StrideH=1, StrideW=1), "m")  # fmt: skip
    kinds = [n.op_type for n in model.graph.node]
    assert sorted(kinds) == ["Conv", "DequantizeLinear", "Transpose", "Transpose"]


def test_float16_weights_are_float32_ones():
    weight = T((4, 3, 3, 2), "float16", data=RNG.normal(size=(4, 3, 3, 2)))
    tensors = [T((1, 5, 5, 2)), weight, T(weight.shape), known([0.5] * 4, "float32"),
               T((1, 5, 5, 4))]  # fmt: skip
    ops = [
        Op("DEQUANTIZE", [1], [2]),
        Op("CONV_2D", [0, 2, 3], [4], "Conv2DOptions", {"StrideH": 1, "StrideW": 1}),
    ]
    data = file_of(Graph(tensors, ops, [0], [4]))
    compare(data)
    assert [n.op_type for n in translate(data, "m").graph.node] == [
        "Transpose",
        "Conv",
        "Transpose",
    ]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_pad_in_front_of_a_convolution_is_the_convolutions_own(dtype):
    weight = weights((4, 3, 3, 2), dtype, 0)
    data = image((1, 6, 6, 2), dtype, zero=-9)
    padded = image((1, 8, 7, 2), dtype, zero=-9)
    result = image((1, 3, 3, 4), dtype, RESULTS)
    tensors = [data, known([[0, 0], [1, 1], [1, 0], [0, 0]]), padded, weight,
               bias(4, dtype, data.scale, weight), result]  # fmt: skip
    stride = {"StrideH": 2, "StrideW": 2, "Padding": VALID}
    ops = [Op("PAD", [0, 1], [2]), Op("CONV_2D", [2, 3, 4], [5], "Conv2DOptions", stride)]
    content = file_of(Graph(tensors, ops, [0], [5]))
    compare(content)
    assert "Pad" not in [n.op_type for n in translate(content, "m").graph.node]


# Transposed convolutions and pools ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 3), (4, 3)])
@pytest.mark.parametrize("stride", [(2, 2), (1, 1), (3, 2)])
def test_transposed_convolutions(stride, kernel, padding, dtype):
    shape = (1, 4, 3, 2)
    sizes = [
        size * step if padding == SAME else (size - 1) * step + extent
        for size, step, extent in zip(shape[1:3], stride, kernel, strict=True)
    ]
    weight = weights((4, *kernel, 2), dtype, 0)
    result = (1, *sizes, 4)
    data = image(shape, dtype, zero=3)
    compare(one("TRANSPOSE_CONV", [known(result), weight, data],
                [image(result, dtype, RESULTS, -4)], "TransposeConvOptions",
                Padding=padding, StrideH=stride[0], StrideW=stride[1]))  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("name", ["MAX_POOL_2D", "AVERAGE_POOL_2D"])
def test_pools(name, padding, dtype):
    shape, kernel, stride = (2, 7, 6, 3), (3, 2), (2, 2)
    sizes = [output(*each, 1, padding) for each in zip(shape[1:3], kernel, stride, strict=True)]
    ends = [image(shape, dtype, zero=4)], [image((2, *sizes, 3), dtype, zero=4)]
    compare(one(name, *ends, "Pool2DOptions", Padding=padding, StrideH=2, StrideW=2,
                FilterHeight=3, FilterWidth=2))  # fmt: skip


def test_l2_pool():
    compare(one("L2_POOL_2D", [T((1, 4, 4, 2))], [T((1, 2, 2, 2))], "Pool2DOptions", Padding=VALID,
                StrideH=2, StrideW=2, FilterHeight=2, FilterWidth=2))  # fmt: skip


# Dense layers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
@pytest.mark.parametrize("shape", [(3, 6), (1, 2, 6), (2, 3, 1, 2)])
@pytest.mark.parametrize("activation", [0, 1])
def test_dense_layers(shape, activation, dtype):
    weight = weights((5, 6), dtype, 0)
    rows = int(np.prod(shape)) // 6
    data = image(shape, dtype, zero=3)
    added = bias(5, dtype, data.scale, weight)
    result = image((rows, 5), dtype, RESULTS, -7)
    compare(one("FULLY_CONNECTED", [data, weight, added], [result], "FullyConnectedOptions",
                FusedActivationFunction=activation))  # fmt: skip


def test_a_dense_layer_that_keeps_its_axes_and_has_no_bias():
    weight = weights((5, 6), "float32", 0)
    ends = [T((2, 3, 6)), weight, None], [T((2, 3, 5))]
    compare(one("FULLY_CONNECTED", *ends, "FullyConnectedOptions", KeepNumDims=True))


def test_weights_of_four_bits():
    values = np.array([[-8, 7, -1], [3, 0, -5], [1, 2, -3]], np.int8)
    weight = T((3, 3), "int4", [0.5, 0.25, 2.0], data=values)
    data = one("FULLY_CONNECTED", [T((2, 3)), weight, None], [T((2, 3))], "FullyConnectedOptions")
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    (actual,) = ort_run(translate(data, "m"), {"t0": x}).values()
    np.testing.assert_allclose(actual, x @ (values * [[0.5], [0.25], [2.0]]).T, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_products_of_batches(turned, dtype):
    shapes = [(2, 4, 3) if turned[0] else (2, 3, 4), (2, 5, 4) if turned[1] else (2, 4, 5)]
    ends = [image(s, dtype, zero=2) for s in shapes], [image((2, 3, 5), dtype, RESULTS, 1)]
    compare(one("BATCH_MATMUL", *ends, "BatchMatMulOptions", AdjX=turned[0], AdjY=turned[1]))


# On the processor --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8", "int16"])
def test_vdla_gives_what_litert_gives(dtype):
    data = conv("DEPTHWISE_CONV_2D", dtype, (1, 7, 6, 4), (3, 3), stride=(2, 2), zero=-9)
    inputs = drawn(interpreter(data).get_input_details())
    module = compile_graph(import_model(translate(data, "m")), load_config("tiny"), Options("cpu"))
    (expected,) = litert(data, inputs).values()
    (actual,) = Executor(module).run(inputs).outputs.values()
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    limit = 1e-4 * np.abs(expected).max() if dtype == "float32" else 1
    assert np.abs(actual.astype(np.float64) - expected).max() <= limit
