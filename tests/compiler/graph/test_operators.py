"""Operators of the host: compiled code gives what ``evaluate`` says, and what a file of them says
is onnxruntime's."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler.graph import ops
from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.ops import functions
from vdla.compiler.graph.ops.blocks import pack
from vdla.compiler.graph.ops.exchange import QExchange
from vdla.compiler.graph.ops.image_matmul import QMatMul
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.normalize import QNormalize, Terms
from vdla.compiler.graph.ops.transpose_image import QTransposeImage
from vdla.compiler.graph.parser import parse_graph
from vdla.compiler.graph.printer import beside, format_graph
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.functions import node_function

RNG = np.random.default_rng(3)
NAMES = {"name": "n", "output": "y"}
F = np.float32


def check(node, *args, dtype=None, rtol=1e-6):
    """Compiled, and through its text; the result."""
    names = list(node.inputs)
    types = {n: TensorType(a.shape, str(a.dtype)) for n, a in zip(names, args, strict=True)}
    shape = node.result_shape([a.shape for a in args])
    types["y"] = TensorType(shape, dtype or str(args[0].dtype))
    graph = verify(Graph(tuple(names), ("y",), (node,), types))
    again = parse_graph(format_graph(graph), beside(graph))
    assert again.nodes == (node,)
    want = node.evaluate(list(args), types["y"])
    assert (want.shape, str(want.dtype)) == (shape, types["y"].dtype)
    kernel = node_function(again.nodes[0], graph)
    given = {**dict(zip(names, args, strict=True)), **kernel.constants}
    found = np.empty(shape, types["y"].dtype)
    arrays = [np.array(given[name], order="C") for name in kernel.args[:-1]]
    jit([kernel.func])[kernel.func.name](*arrays, found)
    np.testing.assert_allclose(found, want, rtol=rtol, atol=rtol)
    return found


def numbers(dtype, shape=(3, 4), low=-9, high=9):
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    low = 0 if dtype.startswith("u") else low
    return RNG.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("function", functions.UNARY)
def test_functions_of_other_floats(function, dtype):
    low, high = {"acosh": (1, 3), "log": (0.1, 3), "sqrt": (0.1, 3)}.get(function, (-0.9, 0.9))
    node = ops.Unary(**NAMES, data="x", function=function, alpha=0.5, beta=0.25)
    x = np.linspace(low, high, 24).astype(dtype).reshape(4, 6)
    check(node, x, rtol=1e-3 if dtype == "float16" else 1e-12)


@pytest.mark.parametrize("function", functions.UNARY_TESTS)
def test_tests(function):
    x = np.array([1, np.nan, np.inf, -np.inf, 0], F)
    found = check(ops.Unary(**NAMES, data="x", function=function), x, dtype="bool")
    assert found.sum() == {"is_inf": 2}.get(function, 1)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
)
@pytest.mark.parametrize(
    "function", ["sub", "mul", "div", "mod", "fmod", "max", "bitand", "bitxor"]
)
def test_integers(function, dtype):
    a, b = numbers(dtype), numbers(dtype, (4,))
    check(ops.Binary(**NAMES, a="a", b="b", function=function), a, b)


def test_no_division_is_a_trap():
    """Of the least integer by -1, and by 0, where ONNX says nothing."""
    a, b = np.array([-128, 7, 7, -7], np.int8), np.array([-1, 0, -2, 2], np.int8)
    assert check(ops.Binary(**NAMES, a="a", b="b", function="div"), a, b).tolist() == [
        -128,
        7,
        -3,
        -3,
    ]
    assert check(ops.Binary(**NAMES, a="a", b="b", function="mod"), a, b).tolist() == [0, 0, -1, 1]


def test_shifts_beyond_the_bits():
    a, b = np.array([-8, 4, -1, 4], np.int8), np.array([8, 9, -1, 1], np.int8)
    for function, want in (("shl", [0, 0, 0, 8]), ("shr", [-1, 0, -1, 2])):
        node = ops.Binary(**NAMES, a="a", b="b", function=function)
        kernel = node_function(
            node, Graph(("a", "b"), ("y",), (node,), dict.fromkeys("aby", TensorType((4,), "int8")))
        )
        found = np.empty(4, np.int8)
        jit([kernel.func])[kernel.func.name](a, b, found)
        assert found.tolist() == want


@pytest.mark.parametrize("function", functions.BINARY_TESTS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "bool", "uint64", "int8"])
def test_comparisons(function, dtype):
    node = ops.Binary(**NAMES, a="a", b="b", function=function)
    check(node, numbers(dtype), numbers(dtype, (4,)), dtype="bool")


@pytest.mark.parametrize("function", ["and", "or", "xor"])
def test_logic(function):
    check(ops.Binary(**NAMES, a="a", b="b", function=function), numbers("bool"), numbers("bool"))


def test_where_and_cast():
    condition, a, b = numbers("bool", (4,)), numbers("int64"), numbers("int64", ())
    check(ops.Where(**NAMES, condition="c", a="a", b="b"), condition, a, b, dtype="int64")
    for source in ("float32", "uint8", "int64", "bool", "float16"):
        for target in ("float64", "int16", "bool", "float16", "uint32"):
            check(ops.Cast(**NAMES, data="x"), numbers(source, low=0), dtype=target)


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize(("function", "dtype"), [
    ("sum", "float32"), ("mean", "float16"), ("max", "bool"), ("min", "int64"), ("prod", "uint8"),
])  # fmt: skip
def test_reductions(function, dtype, axes, keep):
    node = ops.Reduce(**NAMES, data="x", function=function, axes=axes, keepdims=keep)
    check(node, numbers(dtype, (2, 3, 4)), rtol=1e-3 if dtype == "float16" else 1e-6)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_where_the_best_are(largest, last):
    x = numbers("int32", (3, 7, 2), 0, 3)
    node = ops.ArgReduce(**NAMES, data="x", axis=1, largest=largest, last=last)
    check(node, x, dtype="int64")
    check(node, np.full((1, 3, 1), -np.inf, F), dtype="int64")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("function", ["sum", "prod"])
def test_running_totals(function, exclusive, reverse):
    node = ops.Cumulate(
        **NAMES, data="x", function=function, axis=1, exclusive=exclusive, reverse=reverse
    )
    check(node, numbers("float64", (2, 5)))


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("largest", [False, True])
def test_the_best_in_order(largest, places):
    node = ops.TopK(**NAMES, data="x", axis=1, count=4, largest=largest, places=places)
    x = numbers("uint64", (2, 9, 2), 0, 5)  # some are equal
    check(node, x, dtype="int64" if places else "uint64")
    with pytest.raises(GraphError, match="expected 1 to 3 elements of axis 1, found 4"):
        node.result_shape([(2, 3, 2)])


@pytest.mark.parametrize("table", [
    (0, 1, 2, 3), (3, 2, 1, 0), (1, 3), (-1, -1, 0, 1, 2, -1), (0, 0, 3, 1), (2, -1, 1), (-1, -1),
])  # fmt: skip
def test_elements_from_other_places(table):
    node = ops.Take(**NAMES, data="x", shape=(2, len(table)), places=(1, 0, *table), fill=7.0)
    check(node, numbers("int64", (2, 4)))
    check(node, numbers("float16", (2, 4)))
    with pytest.raises(GraphError, match="expected places below"):
        node.result_shape([(1, 4)])


def test_gathers():
    x, low = numbers("float32", (3, 4, 2)), np.array([[0, -1], [2, 9]])  # 9 is beyond: the last
    check(ops.Gather(**NAMES, data="x", indices="i", axis=1), x, low)
    check(ops.Gather(**NAMES, data="x", indices="i", axis=0), x, np.array(-2, np.int32))
    index = RNG.integers(-4, 4, (2, 5, 2))
    check(ops.GatherElements(**NAMES, data="x", indices="i", axis=1), x, index)
    check(ops.GatherND(**NAMES, data="x", indices="i"), x, np.array([[0, 1], [2, -1]]))
    check(ops.GatherND(**NAMES, data="x", indices="i", batch=1), x, np.array([[0], [2], [-1]]))
    with pytest.raises(GraphError, match="expected indices into"):
        ops.GatherND(**NAMES, data="x", indices="i").result_shape([(3,), (2, 2)])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatters(reduction):
    x = numbers("float32", (4, 3))
    names = {**NAMES, "data": "x", "indices": "i", "updates": "u", "reduction": reduction}
    index = np.array([[0, -1, 2], [3, 1, 1]])
    check(ops.ScatterElements(**names, axis=0), x, index, numbers("float32", (2, 3)))
    place = np.array([[1], [-1]])
    check(ops.ScatterND(**names), x, place, numbers("float32", (2, 3)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_products(dtype):
    rtol = 1e-3 if dtype == "float16" else 1e-6
    node = ops.MatMul(**NAMES, a="a", b="b")
    check(node, numbers(dtype, (2, 1, 3, 4)), numbers(dtype, (5, 4, 2)), rtol=rtol)
    for equation, *shapes in (
        ("ij,jk->ik", (2, 3), (3, 4)), ("ii->i", (3, 3)), ("bij,bj->", (2, 3, 4), (2, 4)),
        ("i,j->ij", (2,), (3,)),
    ):  # fmt: skip
        names = tuple("abc"[: len(shapes)])
        node = ops.Einsum(**NAMES, parts=names, equation=equation)
        check(node, *(numbers(dtype, shape) for shape in shapes), rtol=rtol)
    with pytest.raises(GraphError, match="expected matrices that fit each other"):
        ops.MatMul(**NAMES, a="a", b="b").result_shape([(2, 3), (2, 3)])


@pytest.mark.parametrize("zeros", [(0, 0), (5, -128)])
def test_products_of_images(zeros):
    a, b = numbers("int8", (2, 5, 1, 7), -128, 128), numbers("int8", (2, 5, 1, 3), -128, 128)
    scale = float(F(0.002))
    node = QMatMul(**NAMES, a="a", b="b", zeros=(zeros[0], zeros[1]), requant=Requant((scale,), -4))
    found = check(node, a, b)
    wide = np.einsum("ncym,ncyo->noym", a - F(zeros[0]), b - F(zeros[1]))
    exact = wide.astype(np.float64) * scale  # in float32, 250 steps of 0.002 would be a tie
    np.testing.assert_array_equal(found, np.clip(np.rint(exact) - 4, -128, 127))


@pytest.mark.parametrize(
    "shapes", [((2, 5, 1, 7), (2, 4, 1, 3)), ((2, 5, 2, 7), (2, 5, 2, 3)), ((2, 5), (2, 5))]
)
def test_images_that_have_no_product(shapes):
    node = QMatMul(**NAMES, a="a", b="b", zeros=(0, 0), requant=Requant((1.0,), 0))
    expected = r"n \(QMatMul\): expected two images \[N, C, 1, W\] of the same channels, found"
    with pytest.raises(GraphError, match=expected):
        node.result_shape(shapes)


@pytest.mark.parametrize("scale", [0.003, 0.06, 0.4])
@pytest.mark.parametrize("pixels", [1, 7, 197])
def test_softmax_of_integers(pixels, scale):
    """At most one step from floats, in one of a thousand; where shares are large, of a hundred."""
    node = QSoftmax(**NAMES, data="x", step=scale, zeros=(0,), requant=Requant((1 / 256,), -128))
    x = numbers("int8", (2, 50, 1, pixels), -128, 128)
    result = check(node, x).astype(int)
    powers = np.exp((x - x.max(axis=-1, keepdims=True).astype(F)) * F(scale))
    shares = powers / powers.sum(axis=-1, keepdims=True)
    steps = result - np.clip(np.rint(shares * 256) - 128, -128, 127)
    assert np.abs(steps).max() <= 1
    assert (steps != 0).mean() <= (0.001 if pixels > 100 else 0.01)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize(("channels", "spread", "mean"), [(8, 30, 5), (192, 8, 40), (768, 20, -9)])
def test_normalization_in_integers(channels, spread, mean, centered):
    """At most one step from floats, in two of a hundred."""
    rng, zero, epsilon, step = np.random.default_rng(channels), 3, 0.02, 0.03
    x = np.clip(rng.normal(mean, spread, (2, channels, 1, 50)), -128, 127).astype(np.int8)
    gamma, beta = rng.normal(1, 0.4, channels), rng.normal(0, 0.5, channels)
    terms = Terms.of(gamma / step, beta / step)
    numbers = {"shift": terms.shift, "zeros": (zero,), "requant": Requant((terms.scale,), -4)}
    node = QNormalize(
        **NAMES, data="x", factor="f", offset="o", centered=centered, epsilon=epsilon, **numbers
    )
    result = check(node, x, terms.factor, terms.offset)[:, :, 0].astype(int)
    data = x[:, :, 0].astype(float) - zero
    data -= data.mean(axis=1, keepdims=True) if centered else 0
    root = np.sqrt((data**2).mean(axis=1, keepdims=True) + epsilon)
    wanted = data / root * gamma[:, None] + beta[:, None]
    steps = result - np.clip(np.rint(wanted.swapaxes(1, 2) / step) - 4, -128, 127)
    assert np.abs(steps).max() <= 1
    assert (steps != 0).mean() <= 0.02


def test_equal_channels_have_nothing_above_their_mean():
    terms = Terms.of(np.full(16, 30.0), np.arange(16.0))
    names = {"data": "x", "factor": "f", "offset": "o", "centered": True, "epsilon": 0.0}
    node = QNormalize(
        **NAMES, **names, shift=terms.shift, zeros=(0,), requant=Requant((terms.scale,), 0)
    )
    result = check(node, np.full((1, 16, 1, 3), -77, np.int8), terms.factor, terms.offset)
    np.testing.assert_array_equal(result, np.tile(np.arange(16), (1, 3, 1, 1)))


def test_normalizations_that_have_no_integers():
    with pytest.raises(GraphError, match="expected finite factors and offsets of a normalization"):
        Terms.of(np.array([1.0, np.inf]), np.zeros(2))
    node = QNormalize(
        **NAMES, data="x", factor="f", offset="o", centered=True, epsilon=0.0, shift=0,
        zeros=(0,), requant=Requant((1.0,), 0),
    )  # fmt: skip
    with pytest.raises(GraphError, match=r"expected a factor and an offset of shape \[4\], found"):
        node.result_shape([(1, 4, 1, 3), (3,), (4,)])
    with pytest.raises(GraphError, match=r"expected an image \[N, C, 1, W\] of up to 16384 ch"):
        node.result_shape([(1, 4, 2, 3), (4,), (4,)])


def test_channels_and_pixels_in_each_others_place():
    node = QTransposeImage(**NAMES, data="x")
    x = numbers("int8", (2, 5, 1, 3), -128, 128)
    np.testing.assert_array_equal(check(node, x), x.transpose(0, 3, 2, 1))
    with pytest.raises(GraphError, match=r"expected an image \[N, C, 1, W\], found \[1, 2, 3, 4\]"):
        node.result_shape([(1, 2, 3, 4)])


def view(shape, lanes=4):
    return ops.QView(**NAMES, data="x", shape=shape, lanes=lanes)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((2, 8, 1, 6), (8, 4, 1, 3)),  # runs of pixels
        ((8, 4, 1, 3), (2, 8, 1, 6)),
        ((1, 12, 1, 5), (3, 4, 1, 5)),  # heads
        ((2, 6, 4, 3), (2, 6, 1, 12)),  # no whole blocks
    ],
)
def test_the_bytes_of_an_image_as_another_one(before, after):
    x = numbers("int8", before, -128, 128)
    viewed = check(view(after), x)
    assert viewed.shape == after
    np.testing.assert_array_equal(pack(viewed, 4).ravel(), pack(x, 4).ravel())
    np.testing.assert_array_equal(check(view(before), viewed), x)


@pytest.mark.parametrize("shape", [(1, 6, 1, 6), (2, 6, 1, 2), (1, 4, 1, 9)])
def test_other_bytes_are_no_view(shape):
    expected = r"an image with the bytes of \[\d, \d, 1, \d\] in blocks of 4, found \[1, 6, 1, 4\]"
    with pytest.raises(GraphError, match=expected):
        view(shape).result_shape([(1, 6, 1, 4)])


def test_vectors_as_pixels_and_back():
    x = numbers("int8", (7, 5), -128, 128)
    image = check(QExchange(**NAMES, data="x"), x)
    np.testing.assert_array_equal(image, x.T.reshape(1, 5, 1, 7))
    np.testing.assert_array_equal(check(QExchange(**NAMES, data="x"), image), x)
    with pytest.raises(GraphError, match=r"expected vectors \[N, C\] or an image \[1, C, 1, N\]"):
        QExchange(**NAMES, data="x").result_shape([(1, 2, 3)])
    with pytest.raises(GraphError, match=r"or an image \[1, C, 1, N\], found \[2, 3, 1, 4\]"):
        QExchange(**NAMES, data="x").result_shape([(2, 3, 1, 4)])
