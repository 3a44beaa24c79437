"""Images in channel blocks, and what joins a convolution: the same numbers as without."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.processor.description import processor as description
from vdla.compiler.targets.processor.description.processor import AVX2, AVX512, NATIVE, SSE
from vdla.compiler.targets.processor.rewrites.fuse_ops import fuse_ops
from vdla.compiler.targets.processor.rewrites.images import block_images
from vdla.isa.config import load_config
from vdla.runtime.executor import Executor

PAPER = load_config("paper")


class Net:
    """A float network, put together layer by layer; every layer gives its tensor's name."""

    def __init__(self, shape, seed=0):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], {}
        self.tensors = {"x": TensorType(shape, "float32")}

    def shape(self, name):
        return self.tensors[name].shape

    def constant(self, *shape):
        name = f"c{len(self.constants)}"
        self.constants[name] = self.rng.standard_normal(shape).astype(np.float32)
        self.tensors[name] = TensorType(shape, "float32")
        return name

    def add(self, kind, *, dtype="float32", **fields):
        name = f"t{len(self.nodes)}"
        node = kind(name=name, output=name, **fields)
        shape = node.result_shape([self.shape(n) for n in node.inputs])
        self.tensors[name] = TensorType(shape, dtype)
        self.nodes.append(node)
        return name

    def conv(self, data, outputs, kernel=(3, 3), groups=1, bias=True, **fields):
        inputs = self.shape(data)[1]
        weight = self.constant(outputs, inputs // groups, *kernel)
        own = self.constant(outputs) if bias else None
        return self.add(ops.Conv2d, data=data, weight=weight, bias=own, groups=groups, **fields)

    def graph(self, *outputs):
        return verify(Graph(("x",), outputs, tuple(self.nodes), self.tensors, self.constants))


def residual(channels=32, size=9):
    """Two convolutions, a sum, a pool, a reshape."""
    net = Net((1, 3, size, size))
    x = net.conv("x", channels, strides=(2, 2), pads=(1, 1, 1, 1))
    y = net.add(ops.Relu, data=net.conv(x, channels, pads=(1, 1, 1, 1)))
    s = net.add(ops.Relu, data=net.add(ops.Add, a=net.conv(y, channels, (1, 1)), b=x))
    return net, net.add(ops.MaxPool, data=s, kernel=(2, 2), strides=(2, 2))


def compiled(graph, x, threads=1):
    """The outputs of the graph, compiled for the processor."""
    module = compile_graph(graph, PAPER, Options(device="cpu"))
    return Executor(module, threads=threads).run({"x": x}).outputs


def check(graph, seed=0, threads=1):
    x = np.random.default_rng(seed).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    want, found = evaluate(graph, {"x": x}), compiled(graph, x, threads)
    for name in graph.outputs:
        scale = np.abs(want[name]).max()
        np.testing.assert_allclose(found[name], want[name], rtol=1e-4, atol=1e-5 * scale)


def test_what_lies_in_blocks():
    net, last = residual()
    graph = block_images(net.graph(last), AVX512)
    assert [graph.tensors[n.output].block for n in graph.nodes] == [16, 16, 16, 16, 16, 16, 16, 0]
    assert isinstance(graph.nodes[-1], ops.Unpack)
    assert graph.outputs == (last,)
    assert graph.nodes[-1].output == last


def test_blocks_are_as_wide_as_channels_allow():
    for channels, block in ((48, 16), (24, 8), (20, 0)):
        net = Net((1, 5, 6, 6))
        graph = block_images(net.graph(net.conv("x", channels)), AVX512)
        assert graph.tensors[graph.nodes[0].output].block == block


def test_what_cannot_read_blocks_gets_one_plain_copy():
    net = Net((1, 3, 6, 6))
    x = net.conv("x", 32)
    first = net.add(ops.Transpose, data=x, perm=(0, 2, 3, 1))
    second = net.add(ops.Transpose, data=x, perm=(0, 3, 2, 1))
    graph = block_images(net.graph(first, second), AVX512)
    assert [type(n).__name__ for n in graph.nodes] == ["Conv2d", "Unpack", "Transpose", "Transpose"]
    assert {n.inputs for n in graph.nodes[2:]} == {(f"{x}.plain",)}


def test_epilogues_join_the_convolution_that_is_known_last():
    net, last = residual()
    graph = fuse_ops(block_images(net.graph(last), AVX512), NATIVE)
    kinds = [[p.op for p in getattr(n, "parts", (n,))] for n in graph.nodes]
    assert kinds == [
        ["Conv2d"], ["Conv2d", "Relu"], ["Conv2d", "Add", "Relu"], ["MaxPool"], ["Unpack"],
    ]  # fmt: skip


def test_what_is_a_result_stays():
    net = Net((1, 3, 6, 6))
    x = net.conv("x", 16)
    y = net.add(ops.Relu, data=x)
    graph = fuse_ops(block_images(net.graph(x, y), AVX512), NATIVE)
    assert [n.op for n in graph.nodes] == ["Conv2d", "Unpack", "Relu", "Unpack"]
    assert graph.nodes[2].data == graph.nodes[0].output


@pytest.mark.parametrize("channels", [16, 24, 20])
def test_the_reference_reads_blocks(channels):
    net, last = residual(channels)
    graph = net.graph(last)
    x = np.random.default_rng(0).standard_normal((1, 3, 9, 9)).astype(np.float32)
    fused = fuse_ops(block_images(graph, AVX512), NATIVE)
    want, found = evaluate(graph, {"x": x})[last], evaluate(fused, {"x": x})[last]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("vectors", [SSE, AVX2, AVX512], ids=["SSE", "AVX2", "AVX-512"])
def test_a_network_on_other_registers(vectors, monkeypatch):
    monkeypatch.setattr(description, "_native_vectors", lambda: vectors)
    net, last = residual()
    check(net.graph(last))


@settings(max_examples=3)
@given(data=st.data())
def test_convolutions(data):
    """From a plain image and from blocks, of any size, dense and depthwise, with an epilogue."""
    draw = data.draw
    height, width = draw(st.integers(4, 9)), draw(st.integers(4, 33))
    net = Net((draw(st.integers(1, 2)), draw(st.integers(1, 5)), height, width), seed=3)
    name = net.conv("x", draw(st.sampled_from([8, 16, 32])), (1, 1))
    channels = net.shape(name)[1]
    depthwise = draw(st.booleans())
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    pads = draw(st.tuples(*[st.integers(0, 2)] * 4))
    strides = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    name = net.conv(
        name, channels if depthwise else draw(st.sampled_from([8, 24, 48])), kernel,
        channels if depthwise else 1, draw(st.booleans()), pads=pads, strides=strides,
    )  # fmt: skip
    name = net.add(ops.Clip, data=name, low=-1.0, high=6.0)
    other = net.add(ops.Unary, data=name, function="sigmoid")
    check(net.graph(net.add(ops.Binary, a=name, b=other, function="mul")))


@pytest.mark.parametrize("dilations", [(2, 1), (1, 3)])
def test_dilated(dilations):
    net = Net((1, 4, 11, 13))
    check(net.graph(net.conv("x", 16, dilations=dilations, pads=(1, 2, 1, 2))))


def test_pools_of_blocks():
    net = Net((1, 3, 10, 10))
    x = net.conv("x", 16)
    pads = (1, 0, 1, 1)
    y = net.add(ops.AvgPool, data=x, kernel=(3, 3), strides=(2, 2), pads=pads)
    z = net.add(ops.MaxPool, data=x, kernel=(3, 2), strides=(1, 2), pads=pads)
    check(net.graph(y, z))


def test_the_gate_of_squeeze_and_excitation():
    """Two images in blocks, one of a single pixel."""
    net = Net((1, 3, 10, 10))
    x = net.conv("x", 32)
    mean = net.add(ops.AvgPool, data=x, kernel=(8, 8))
    gate = net.add(ops.Unary, data=net.conv(mean, 32, (1, 1)), function="hard_sigmoid", alpha=0.2,
                   beta=0.5)  # fmt: skip
    graph = net.graph(net.add(ops.Binary, a=x, b=gate, function="mul"))
    assert sum(isinstance(n, ops.Unpack) for n in block_images(graph, AVX512).nodes) == 1
    check(graph)


def test_a_dense_layer_whose_outputs_fill_no_vector():
    net = Net((3, 37))
    weight, bias = net.constant(21, 37), net.constant(21)
    check(net.graph(net.add(ops.Dense, data="x", weight=weight, bias=bias)))


# Operands beside images in blocks -----------------------------------------------------------------

SIZE = 5


def beside(*channels):
    """Convolutions of an image 5 x 5, of so many channels, and what they give."""
    net = Net((1, 3, SIZE, SIZE))
    return net, *(net.conv("x", count, (1, 1)) for count in channels)


def kept(graph, unpacked=1):
    """So many images are unpacked, the numbers are the reference's on 1 and 2 threads, and in what
    is laid out."""
    laid = verify(block_images(graph, AVX512))
    assert sum(isinstance(node, ops.Unpack) for node in laid.nodes) == unpacked
    x = np.random.default_rng(0).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    want, found = evaluate(graph, {"x": x}), evaluate(laid, {"x": x})
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], want[name])
    for threads in 1, 2:
        check(graph, threads=threads)


def combined(net, function, a, b):
    if function == "add":
        return net.add(ops.Add, a=a, b=b)
    return net.add(ops.Binary, a=a, b=b, function=function)


SPREAD = [
    (32, 1, 1), (1, 32, 1, 1), (1, SIZE, SIZE), (SIZE, SIZE), (1, 1, SIZE, 1), (SIZE,), (1, 1),
    (1,), (), (2, 32, 1, 1), (2, 1, SIZE, SIZE),
]  # fmt: skip


@pytest.mark.parametrize("turned", [False, True], ids=["right", "left"])
@pytest.mark.parametrize("function", [pytest.param("add", marks=pytest.mark.long), "sub"])
@pytest.mark.parametrize("shape", SPREAD, ids=str)
def test_a_plain_operand_that_is_spread_is_read_by_channel(shape, function, turned):
    net, y = beside(32)
    operands = [y, net.constant(*shape)]
    kept(net.graph(combined(net, function, *operands[:: -1 if turned else 1])))


@pytest.mark.parametrize("shape", [(1, 32, SIZE, SIZE), (32, SIZE, 1), (1, 32, 1, SIZE)], ids=str)
@pytest.mark.parametrize("function", ["add", "mul"])
def test_beside_a_plain_operand_that_varies_both_ways_images_are_unpacked(shape, function):
    net, y = beside(32)
    y = net.add(ops.Relu, data=combined(net, function, y, net.constant(*shape)))
    graph = net.graph(y)
    laid = block_images(graph, AVX512)
    assert [node.op for node in laid.nodes][:2] == ["Conv2d", "Unpack"]
    kept(graph)


def test_a_plain_operand_may_be_computed():
    net, y = beside(32)
    gate = net.add(ops.Unary, data=net.conv("x", 1, (1, 1)), function="sigmoid")
    kept(net.graph(combined(net, "mul", y, gate)))


def test_what_somebody_reads_plain_is_unpacked_beside_its_blocks():
    net, y = beside(32)
    total = combined(net, "add", y, net.constant(32, 1, 1))
    turned = net.add(ops.Transpose, data=y, perm=(0, 2, 3, 1))
    kept(net.graph(total, turned), unpacked=2)


@pytest.mark.parametrize("channels", [(32, 24), (24, 32, 8)])
def test_images_with_different_blocks_are_joined_in_the_smaller_ones(channels):
    """Of 16 channels and of 8."""
    net, *parts = beside(*channels)
    joined = net.add(ops.Concat, parts=tuple(parts), axis=1)
    kept(net.graph(net.conv(net.add(ops.Relu, data=joined), 32, (1, 1))))


@pytest.mark.parametrize("turned", [False, True])
def test_images_with_different_blocks_are_added_in_the_smaller_ones(turned):
    """Of 32 channels, joined of 24 and 8, and of a convolution's in blocks of 16."""
    net, a, b, c = beside(24, 8, 32)
    joined = net.add(ops.Concat, parts=(a, b), axis=1)
    first, second = (c, joined) if turned else (joined, c)
    total = net.add(ops.Relu, data=combined(net, "add", first, second))
    scaled = combined(net, "mul", total, net.constant(32, 1, 1))
    kept(net.graph(net.conv(scaled, 32, (1, 1))))


@pytest.mark.parametrize("size", [1, SIZE])
def test_an_image_of_a_pixel_in_blocks_is_spread_over_one(size):
    net, y = beside(32)
    pixel = net.add(ops.AvgPool, data=y, kernel=(SIZE, size), strides=(1, 1))
    kept(net.graph(combined(net, "add", pixel, y)))


@pytest.mark.parametrize("shape", [(SIZE, SIZE), (32, 1, 1), ()], ids=str)
def test_a_choice_by_a_plain_condition(shape):
    net, a, b = beside(32, 32)
    limit = net.constant(*shape)
    test = net.add(ops.Binary, a=limit, b=net.constant(), function="lt", dtype="bool")
    kept(net.graph(net.add(ops.Where, condition=test, a=a, b=b)))


def test_a_choice_of_an_image_and_a_plain_operand():
    net, a = beside(32)
    test = net.add(
        ops.Binary, a=net.constant(SIZE, 1), b=net.constant(), function="lt", dtype="bool"
    )
    kept(net.graph(net.add(ops.Where, condition=test, a=a, b=net.constant(32, 1, 1))))


def test_a_choice_by_a_condition_of_all_elements_unpacks():
    """A comparison's results lie plain, and so do the choice's."""
    net, a, b = beside(32, 32)
    test = net.add(ops.Binary, a=a, b=b, function="lt", dtype="bool")
    kept(net.graph(net.add(ops.Where, condition=test, a=a, b=b)), unpacked=2)


@pytest.mark.parametrize(("axis", "channels"), [(1, (16, 48)), (1, (24, 8)), (2, (32, 32)),
                                               (3, (32, 32)), (0, (32, 32))])  # fmt: skip
def test_images_of_whole_blocks_are_joined_in_blocks(axis, channels):
    net, *parts = beside(*channels)
    kept(net.graph(net.add(ops.Concat, parts=tuple(parts), axis=axis)))


@pytest.mark.parametrize("channels", [32, 24])
def test_channels_are_normalized_in_blocks(channels):
    net, a, b = beside(channels, channels)
    joined = net.add(ops.Concat, parts=(a, b), axis=1)
    factor, offset = (net.constant(2 * channels) for _ in range(2))
    normal = net.add(ops.BatchNorm, data=joined, factor=factor, offset=offset)
    kept(net.graph(net.conv(net.add(ops.Relu, data=normal), channels, (1, 1))))


def test_joined_beside_a_plain_part_all_are_plain():
    net, a = beside(32)
    graph = net.graph(net.add(ops.Concat, parts=(a, net.constant(1, 32, SIZE, SIZE)), axis=1))
    kept(graph)
    assert [node.op for node in block_images(graph, AVX512).nodes] == ["Conv2d", "Unpack", "Concat"]


def test_images_that_take_turns():
    net, *parts = beside(32, 32, 32, 32)
    kept(net.graph(net.add(ops.Interleave, parts=tuple(parts), rows=2, columns=2)))


def test_an_image_in_blocks_and_a_plain_one_take_turns_unpacked():
    net, a = beside(32)
    parts = (a, net.constant(1, 32, SIZE, SIZE))
    kept(net.graph(net.add(ops.Interleave, parts=parts, rows=1, columns=2)))


def taken(net, data, *tables, fill=0.0):
    """Elements from places along each axis; all of them where a table is missing."""
    tables = [
        list(range(n)) if t is None else [*t] for n, t in zip(net.shape(data), tables, strict=True)
    ]
    places = tuple(place for table in tables for place in table)
    shape = tuple(map(len, tables))
    name = f"t{len(net.nodes)}"
    net.nodes.append(
        ops.Take(name=name, output=name, data=data, shape=shape, places=places, fill=fill)
    )
    net.tensors[name] = TensorType(shape, "float32")
    return name


@pytest.mark.parametrize("tables", [
    (None, range(16), None, None), (None, range(16, 48), None, None),
    (None, None, range(1, 5, 2), range(4, -1, -1)), ((0, 0), range(32, 48), (3, 0, 0, 1), None),
    (None, None, (-1, *range(5), -1), (-1, 2, -1, 3)),
], ids=str)  # fmt: skip
def test_whole_blocks_are_taken_from_blocks(tables):
    net, y = beside(48)
    graph = net.graph(net.add(ops.Relu, data=taken(net, y, *tables, fill=1.5)))
    assert [node.op for node in block_images(graph, AVX512).nodes] == [
        "Conv2d", "Take", "Relu", "Unpack",
    ]  # fmt: skip
    kept(graph)


@pytest.mark.parametrize("channels", [
    range(8), range(8, 24), range(0, 32, 2), (*range(16), *range(32, 48)), (-1, *range(15)),
    (*range(15), -1), range(15, -1, -1), [0] * 16,
], ids=str)  # fmt: skip
def test_what_cuts_or_turns_a_block_is_taken_from_a_plain_copy(channels):
    net, y = beside(48)
    graph = net.graph(net.add(ops.Relu, data=taken(net, y, None, channels, None, None, fill=1.5)))
    assert [node.op for node in block_images(graph, AVX512).nodes] == [
        "Conv2d", "Unpack", "Take", "Relu",
    ]  # fmt: skip
    kept(graph)


def test_halves_of_channels_are_computed_apart_and_joined():
    """As in ShuffleNet and YOLO."""
    net, y = beside(64)
    a, b = (taken(net, y, None, range(n, n + 32), None, None) for n in (0, 32))
    a = net.conv(a, 32, pads=(1, 1, 1, 1))
    y = net.add(ops.Concat, parts=(a, b, combined(net, "mul", a, net.constant(32, 1, 1))), axis=1)
    kept(net.graph(net.conv(y, 32, (1, 1))))


@settings(max_examples=8)
@given(data=st.data())
def test_any_graph_of_images(data):
    """However images and plain operands meet, nothing but addresses changes."""
    draw = data.draw
    net, *names = beside(*draw(st.sampled_from([(32, 32), (32, 24), (16, 20)])))
    for _ in range(draw(st.integers(1, 4))):
        a, b = (draw(st.sampled_from(names)) for _ in range(2))
        channels = net.shape(a)[1]
        kind = draw(st.sampled_from(["add", "sub", "plain", "joined", "turns", "taken"]))
        alike = net.shape(a) == net.shape(b)
        if kind in ("add", "sub") and alike:
            names.append(combined(net, kind, a, b))
        elif kind == "joined" and net.shape(a)[2:] == net.shape(b)[2:]:
            names.append(net.add(ops.Concat, parts=(a, b), axis=1))
        elif kind == "turns" and alike:
            names.append(net.add(ops.Interleave, parts=(a, b), rows=2, columns=1))
        elif kind == "taken":
            first = draw(st.sampled_from([0, 4, 8]))
            names.append(taken(net, a, None, range(first, channels), None, None))
        else:
            shape = draw(
                st.sampled_from([(channels, 1, 1), (1, 1), net.shape(a)[2:], net.shape(a)])
            )
            names.append(combined(net, "mul", a, net.constant(*shape)))
    graph = net.graph(names[-1])
    laid = verify(block_images(graph, AVX512))
    x = np.random.default_rng(0).standard_normal(graph.tensors["x"].shape).astype(np.float32)
    np.testing.assert_array_equal(
        evaluate(laid, {"x": x})[names[-1]], evaluate(graph, {"x": x})[names[-1]]
    )
    check(graph, threads=draw(st.sampled_from([1, 2])))


# int8 -------------------------------------------------------------------------------------------


class Integers(Net):
    """The same with int8 between the layers."""

    def __init__(self, shape, seed=0):
        super().__init__(shape, seed)
        self.tensors["x"] = TensorType(shape, "int8")

    def add(self, kind, **fields):
        return super().add(kind, dtype="int8", **fields)

    def stored(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        self.tensors[name] = TensorType(array.shape, str(array.dtype))
        return name

    def qconv(self, data, outputs, kernel=(3, 3), groups=1, biases=5000, zero=5, **fields):
        inputs = self.shape(data)[1] // groups
        weight = self.rng.integers(-128, 128, (outputs, inputs, *kernel)).astype(np.int8)
        bias = self.rng.integers(-biases, biases, outputs).astype(np.int32)
        usual = max(74 * 74 * np.sqrt(weight[0].size), biases)  # the size of a sum
        scale = self.rng.uniform(0.3, 1.0, outputs) * 90 / usual
        requant = Requant(tuple(float(s) for s in scale.astype(np.float32)), zero, -120, 119)
        return self.add(
            ops.QConv2d, data=data, weight=self.stored(weight), bias=self.stored(bias),
            groups=groups, zeros=(int(self.rng.integers(-128, 128)),), requant=requant, **fields,
        )  # fmt: skip


def check_integers(graph, seed=0, distinct=20):
    x = np.random.default_rng(seed).integers(-128, 128, graph.tensors["x"].shape).astype(np.int8)
    want, found = evaluate(graph, {"x": x}), compiled(graph, x)
    for name in graph.outputs:
        assert len(np.unique(want[name])) > distinct
        np.testing.assert_array_equal(found[name], want[name])


@settings(max_examples=3)
@given(data=st.data())
def test_integer_convolutions_are_exact(data):
    draw = data.draw
    shape = (draw(st.integers(1, 2)), draw(st.integers(1, 6)), 8, draw(st.integers(5, 20)))
    net = Integers(shape, draw(st.integers(0, 99)))
    name = net.qconv("x", draw(st.sampled_from([8, 16, 32])), (2, 2))
    channels = net.shape(name)[1]
    depthwise = draw(st.booleans())
    pads = draw(st.tuples(*[st.integers(0, 2)] * 4))
    strides = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    window = {"kernel": draw(st.tuples(st.integers(1, 3), st.integers(1, 3))), "pads": pads,
              "strides": strides}  # fmt: skip
    outputs = channels if depthwise else draw(st.sampled_from([8, 24, 32]))
    name = net.qconv(name, outputs, groups=channels if depthwise else 1, **window)
    total = Requant((0.7, 1.3), 3, -100)
    addition = ops.AddStep(addend=name, zeros=(5, -4), requant=total)
    last = net.qconv(name, outputs, (1, 1), epilogue=(addition,))
    check_integers(net.graph(last))


def test_a_plain_image_that_is_data_and_addend():
    """A convolution reads plain images into blocks, but what it adds has to lie as its result."""
    net = Integers((2, 8, 3, 3))
    addition = ops.AddStep(addend="x", zeros=(5, -4), requant=Requant((0.7, 1.3), 3))
    check_integers(net.graph(net.qconv("x", 8, (1, 1), epilogue=(addition,))))


@pytest.mark.parametrize("blocked", [False, True])
def test_an_addend_of_one_value_for_each_channel(blocked):
    net = Integers((1, 16, 9, 9))
    constant = np.arange(0, 112, 7, np.int8).reshape(1, 16, 1, 1)
    one = net.qconv("x", 16, (9, 9)) if blocked else net.stored(constant)
    addition = ops.AddStep(addend=one, zeros=(5, -4), requant=Requant((0.7, 1.3), 3))
    check_integers(net.graph(net.qconv("x", 16, (1, 1), epilogue=(addition,))))


def test_sums_too_large_for_float64_are_rounded_in_integers():
    net = Integers((1, 4, 6, 6))
    check_integers(net.graph(net.qconv("x", 16, biases=1 << 30)), distinct=8)


def test_results_beyond_int32_are_clipped_and_do_not_wrap():
    """The largest sum, 64 * 128, times 2**18 is 2**31, which int32 hasn't."""
    net = Integers((1, 1, 4, 4))
    weight = np.full((16, 1, 1, 1), -64, np.int8)
    names = {"weight": net.stored(weight), "bias": net.stored(np.zeros(16, np.int32))}
    requant = Requant((2.0**18,) * 16, 0)
    y = net.add(ops.QConv2d, data="x", **names, zeros=(0,), requant=requant)
    graph, x = net.graph(y), np.full((1, 1, 4, 4), -128, np.int8)
    assert (evaluate(graph, {"x": x})[y] == 127).all()
    assert (compiled(graph, x)[y] == 127).all()


def test_integer_pools_and_sums_of_blocks():
    net = Integers((1, 4, 9, 9))
    x, y = net.qconv("x", 16, zero=3), net.qconv("x", 16, zero=-8)
    total = net.add(ops.QAdd, a=x, b=y, zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99))
    pooled = net.add(ops.QMaxPool, data=total, kernel=(2, 2), strides=(2, 2), pads=(1, 0, 0, 1))
    mean = net.add(
        ops.QAvgPool, data=total, kernel=(3, 3), pads=(1, 1, 1, 1), zeros=(3,),
        requant=Requant((0.04,), -2),
    )  # fmt: skip
    check_integers(net.graph(pooled, mean))
