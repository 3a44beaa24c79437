"""Images held with channels first: values beside LiteRT's, and where transpositions stand."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_files import Graph, Op, T, file_of, known
from tflite_reference import compare

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.frontend.tflite import translate
from vdla.compiler.graph.passes import optimize
from vdla.compiler.placement import layers_of
from vdla.isa.config import load_config

RNG = np.random.default_rng(5)
SHAPE = (2, 6, 4, 3)
STEP = {"float32": {}, "int8": {"scale": 0.05, "zero": -3}}
POINT = {"StrideH": 1, "StrideW": 1}
POOL = {"FilterHeight": 2, "FilterWidth": 2, "StrideH": 2, "StrideW": 2}


class Net:
    """A network under construction behind a convolution; tensors are named by their numbers."""

    def __init__(self, dtype, shape=SHAPE):
        self.dtype, self.tensors, self.ops = dtype, [], []
        self.input = self.tensor(shape)
        self.top = self.conv(self.input, shape)

    def tensor(self, shape, **more):
        self.tensors.append(T(shape, self.dtype, **{**STEP[self.dtype], **more}))
        return len(self.tensors) - 1

    def constant(self, values, dtype="int32"):
        self.tensors.append(known(values, dtype))
        return len(self.tensors) - 1

    def operand(self, shape):
        """A constant of the network's own type."""
        if self.dtype == "float32":
            return self.tensor(shape, data=RNG.normal(size=shape))
        return self.tensor(shape, data=RNG.integers(-23, 17, shape))  # to ±1

    def conv(self, data, shape):
        channels = shape[3]
        form = channels, 1, 1, channels
        if self.dtype == "float32":
            weight = self.tensor(form, data=RNG.normal(size=form))
            added = self.tensor((channels,), data=RNG.normal(size=channels))
        else:
            steps = RNG.uniform(0.005, 0.02, channels)
            values = RNG.integers(-127, 128, form)
            weight = self.tensor(form, scale=steps, zero=0, data=values)
            self.tensors.append(T((channels,), "int32", 0.05 * steps, data=[7] * channels))
            added = len(self.tensors) - 1
        return self.op("CONV_2D", [data, weight, added], shape, "Conv2DOptions", **POINT)

    def op(self, name, inputs, shape, options="", /, dtype=None, **fields):
        if dtype is None:
            made = self.tensor(shape)
        else:
            self.tensors.append(T(shape, dtype))
            made = len(self.tensors) - 1
        self.ops.append(Op(name, inputs, [made], options, fields))
        return made

    def file(self, *ends):
        return file_of(Graph(self.tensors, self.ops, [self.input], ends))


def check(net, *ends, turned=None):
    """Compares a network with LiteRT, each behind its own rounding: at most a step a layer."""
    data = net.file(*ends)
    compare(data, steps=len(net.ops))
    count = sum(n.op_type == "Transpose" for n in translate(data, "m").graph.node)
    assert turned is None or count == turned


DTYPES = pytest.mark.parametrize("dtype", ["float32", "int8"])


@DTYPES
def test_nothing_is_turned_between_operators_of_images(dtype):
    net = Net(dtype)
    n, h, w, c = SHAPE
    pads = net.constant([[0, 0], [1, 1], [0, 2], [0, 0]])
    padded = net.op("PAD", [net.top, pads], (n, h + 2, w + 2, c))
    pooled = net.op("MAX_POOL_2D", [padded], (n, 4, 3, c), "Pool2DOptions", **POOL)
    both = net.op(
        "CONCATENATION", [pooled, pooled], (n, 4, 3, 2 * c), "ConcatenationOptions", Axis=3
    )
    added = net.op("ADD", [both, net.operand((2 * c,))], (n, 4, 3, 2 * c), "AddOptions")
    large = net.op("RESIZE_NEAREST_NEIGHBOR", [added, net.constant([8, 6])], (n, 8, 6, 2 * c),
                   "ResizeNearestNeighborOptions")  # fmt: skip
    part = net.op("SLICE", [large, net.constant([0, 1, 0, 0]), net.constant([-1, 6, 6, 4])],
                  (n, 6, 6, 4))  # fmt: skip
    check(net, net.conv(part, (n, 6, 6, 4)), turned=2)


@DTYPES
def test_operators_in_front_of_a_convolution_are_turned_once(dtype):
    net = Net(dtype)
    net.ops.clear()
    half = net.op("MUL", [net.input, net.operand((1,))], SHAPE, "MulOptions")
    end = net.conv(net.op("RELU", [half], SHAPE), SHAPE)
    check(net, end, turned=2)
    kinds = [node.op_type for node in translate(net.file(end), "m").graph.node]
    assert kinds.index("Transpose") < kinds.index("Mul")


@DTYPES
@pytest.mark.parametrize("shape", [(3,), (4, 3), (1, 4, 1), (6, 1, 1), (1, 1, 4, 3), ()])
@pytest.mark.parametrize("name", ["ADD", "MUL", "MAXIMUM"])
def test_operands_of_fewer_axes_broadcast_from_the_last(name, shape, dtype):
    net = Net(dtype)
    words = {"ADD": "AddOptions", "MUL": "MulOptions"}
    check(net, net.op(name, [net.top, net.operand(shape)], SHAPE, words.get(name, "")), turned=2)


@DTYPES
@pytest.mark.parametrize("axis", [1, 2, 3, -1, -3])
def test_concatenations_along_any_axis(axis, dtype):
    net = Net(dtype)
    shape = np.concatenate([np.zeros(SHAPE)] * 2, axis).shape
    inputs = [net.top, net.operand(SHAPE)]
    check(net, net.op("CONCATENATION", inputs, shape, "ConcatenationOptions", Axis=axis), turned=2)


@DTYPES
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("axes", [(1, 2), (3,), (-1,), (1,), (2, 3), (-3, -2), (0, 3)])
def test_means_over_any_axes(axes, kept, dtype):
    net = Net(dtype)
    shape = np.zeros(SHAPE).sum(axis=axes, keepdims=kept).shape
    mean = net.op("MEAN", [net.top, net.constant(axes)], shape, "ReducerOptions", KeepDims=kept)
    check(net, mean)


def test_softmax_over_channels_is_over_the_last_axis():
    net = Net("float32")
    check(net, net.op("SOFTMAX", [net.top], SHAPE, "SoftmaxOptions", Beta=1.0), turned=2)


@DTYPES
def test_a_reshape_sees_the_files_order(dtype):
    """Of an image to rows that nobody but the output reads, and to one that isn't of batches."""
    for shape in [(2, 72), (4, 36), (2, 24, 3), (144,)]:
        net = Net(dtype)
        check(net, net.op("RESHAPE", [net.top, net.constant(shape)], shape))


@DTYPES
def test_a_dense_layer_behind_an_image_takes_its_weights_in_its_order(dtype):
    net = Net(dtype)
    flat = net.op("RESHAPE", [net.top, net.constant([2, 72])], (2, 72))
    steps = {} if dtype == "float32" else {"scale": 0.01, "zero": 0}
    values = RNG.normal(size=(5, 72)) if dtype == "float32" else RNG.integers(-127, 128, (5, 72))
    weight = net.tensor((5, 72), data=values, **steps)
    dense = net.op("FULLY_CONNECTED", [flat, weight], (2, 5), "FullyConnectedOptions")
    check(net, dense, turned=1)


@DTYPES
def test_who_else_reads_a_flattened_image_gets_the_files_order(dtype):
    net = Net(dtype)
    flat = net.op("RESHAPE", [net.top, net.constant([2, 72])], (2, 72))
    check(
        net,
        net.op("RELU", [flat], (2, 72)),
        net.op("RESHAPE", [flat, net.constant([8, 18])], (8, 18)),
    )


@DTYPES
def test_splits_and_strided_slices_of_images(dtype):
    net = Net(dtype)
    parts = [net.tensor((2, 6, 4, 1)) for _ in range(3)]
    net.ops.append(Op("SPLIT", [net.constant(3), net.top], parts, "SplitOptions", {"NumSplits": 3}))
    bounds = [net.constant(each) for each in ([0, 1, 0, 0], [2, 5, 4, 1], [1, 2, 3, 1])]
    sliced = net.op("STRIDED_SLICE", [parts[1], *bounds], (2, 2, 2, 1), "StridedSliceOptions")
    check(net, parts[0], sliced)


def test_an_output_that_is_an_input_or_a_constant():
    tensors = [T((2, 3), name="x"), known([1, 2, 3], name="c")]
    graph = Graph([*tensors, T((2, 3))], [Op("NEG", [0], [2])], [0], [0, 1, 2])
    model = translate(file_of(graph), "m")
    assert [o.name for o in model.graph.output] == ["x.result", "c", "t2"]


# Through the passes ------------------------------------------------------------------------------


def test_integers_go_in_and_come_out_without_a_step_between():
    net = Net("int8", (1, 4, 4, 16))
    graph = optimize(import_model(translate(net.file(net.top), "m")))
    assert graph.tensors["t0"].dtype == "int8"
    assert [node.op for node in graph.nodes] == ["Transpose", "QConv2d", "QTranspose"]


def test_only_the_ends_of_an_image_network_stay_on_the_host():
    net = Net("int8", (1, 8, 8, 16))
    pooled = net.op("MAX_POOL_2D", [net.top], (1, 4, 4, 16), "Pool2DOptions", **POOL)
    added = net.op("ADD", [pooled, net.conv(pooled, (1, 4, 4, 16))], (1, 4, 4, 16), "AddOptions")
    large = net.op("RESIZE_NEAREST_NEIGHBOR", [added, net.constant([8, 8])], (1, 8, 8, 16),
                   "ResizeNearestNeighborOptions")  # fmt: skip
    both = net.op("CONCATENATION", [large, net.top], (1, 8, 8, 32), "ConcatenationOptions", Axis=3)
    data = net.file(net.conv(both, (1, 8, 8, 32)))
    module = compile_graph(import_model(translate(data, "m")), load_config("paper-full"), Options())
    rows = layers_of(module.metadata["placement"])
    assert [row["op"] for row in rows if row["device"] == "cpu"] == ["Transpose", "QTranspose"]


@DTYPES
def test_images_of_one_pixel_or_one_channel_are_only_reshaped(dtype):
    """A transposition of 213 channels became as many images that take turns, and ended nowhere."""
    for shape in [(1, 1, 1, 7), (1, 3, 4, 1)]:
        net = Net(dtype, shape)
        flat = net.op("RESHAPE", [net.top, net.constant([1, -1])], (1, int(np.prod(shape))))
        check(net, flat, turned=0)
