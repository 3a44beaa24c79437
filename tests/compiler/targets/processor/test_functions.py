"""Operators on the processor, compiled, against the numpy reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from qdq import QdqModel

from vdla.compiler.build import Options
from vdla.compiler.frontend import import_model
from vdla.compiler.graph import ir, ops
from vdla.compiler.graph.ir import BY_OP, Graph
from vdla.compiler.graph.numbers import pool_scale
from vdla.compiler.graph.ops.minimum import QMinimum
from vdla.compiler.graph.passes import optimize
from vdla.compiler.graph.reference import evaluate, evaluate_node
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.rewrites.layout import layout
from vdla.compiler.targets.functions import symbol_of
from vdla.compiler.targets.processor.codegen.llvm import jit
from vdla.compiler.targets.processor.functions import node_function
from vdla.compiler.targets.processor.node_functions import node_functions
from vdla.compiler.targets.processor.target import ProcessorTarget
from vdla.compiler.targets.target import place
from vdla.compiler.tir.interp import run

RNG = np.random.default_rng(11)


def run_kernel(graph, node, values, interpret=False):
    """What the node's host function writes, given the tensors' values."""
    kernel = node_function(node, graph, "f")
    known = {**values, **kernel.constants}
    params = kernel.func.params
    arrays = [
        np.ascontiguousarray(known[name]).reshape(p.shape)
        for name, p in zip(kernel.args[:-1], params, strict=False)
    ]
    out = np.full(params[-1].shape, 77, params[-1].dtype)
    if interpret:
        run(kernel.func, [*arrays, out])
    else:
        jit([kernel.func])["f"](*arrays, out)
    return out.reshape(graph.tensors[node.output].physical)


def check(node, types, constants=None, exact=True, out=None):
    """Random operands through the reference and through the compiled function."""
    constants = constants or {}
    tensors = {n: TensorType(tuple(shape), dtype) for n, (dtype, *shape) in types.items()}
    tensors.update({n: TensorType(a.shape, str(a.dtype)) for n, a in constants.items()})
    values = dict(constants)
    for name in node.inputs:
        if name not in values:
            kind = tensors[name]
            integers = RNG.integers(-128, 128, kind.shape)
            values[name] = (
                RNG.standard_normal(kind.shape).astype(np.float32) * 3
                if kind.dtype == "float32"
                else (integers + (128 if kind.dtype == "uint8" else 0)).astype(kind.dtype)
            )
    graph = Graph(tuple(n for n in node.inputs if n not in constants), ("y",), (node,), tensors,
                  constants)  # fmt: skip
    want = evaluate_node(graph, node, [values[n] for n in node.inputs])
    got = run_kernel(graph, node, values)
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_every_operator_has_a_host_function():
    """But those of onnxruntime."""
    without = {cls for cls in BY_OP.values() if cls.express is ir.Node.express}
    assert without == {ops.External, ops.Open}


F, I8, U8, I32 = "float32", "int8", "uint8", "int32"
IMAGE = (2, 5, 7, 6)


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("dtype", [I8, U8])
def test_quantize_and_dequantize(axis, dtype):
    scale, zero = ((0.037,), (9,)) if axis is None else ((0.1, 0.2, 0.3, 0.4, 0.5), (1, 2, 3, 4, 5))
    common = {"name": "n", "data": "x", "output": "y", "scale": scale, "zero_point": zero}
    check(ops.Quantize(**common, axis=axis), {"x": (F, *IMAGE), "y": (dtype, *IMAGE)})
    check(ops.Dequantize(**common, axis=axis), {"x": (dtype, *IMAGE), "y": (F, *IMAGE)})


def test_quantize_extremes():
    node = ops.Quantize(name="n", data="x", output="y", scale=(1.0,), zero_point=(-3,))
    x = np.array([0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf], np.float32)
    check(node, {"y": (I8, 8)}, {"x": x})


def test_dequantize_int32():
    node = ops.Dequantize(name="n", data="x", output="y", scale=(1e-3,), zero_point=(-7,))
    x = np.array([2**31 - 1, -(2**31), 0, 12345], np.int32)
    check(node, {"y": (F, 4)}, {"x": x})


@pytest.mark.parametrize("pair", [(I8, U8), (U8, I8)])
def test_flip_sign(pair):
    check(
        ops.FlipSign(name="n", data="x", output="y"), {"x": (pair[0], 3, 9), "y": (pair[1], 3, 9)}
    )


@pytest.mark.parametrize("shape", [(2, 20, 3, 5), (1, 16, 2, 2), (3, 7)])
def test_pack_and_unpack(shape):
    types = {"x": TensorType(shape, I8), "p": TensorType(shape, I8, block=16)}
    pack = ops.Pack(name="p", data="x", output="p", block=16)
    unpack = ops.Unpack(name="u", data="p", output="y", block=16)
    graph = Graph(("x",), ("y",), (pack, unpack), {**types, "y": types["x"]})
    x = RNG.integers(-128, 128, shape).astype(np.int8)
    want = evaluate(graph, {"x": x})
    np.testing.assert_array_equal(run_kernel(graph, pack, {"x": x}), want["p"])
    np.testing.assert_array_equal(run_kernel(graph, unpack, want), x)


WINDOWS = st.fixed_dictionaries(
    {
        "strides": st.tuples(st.integers(1, 3), st.integers(1, 3)),
        "pads": st.tuples(*[st.integers(0, 2)] * 4),
        "dilations": st.tuples(st.integers(1, 2), st.integers(1, 2)),
    }
)


@settings(max_examples=10)
@given(
    window=WINDOWS,
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    per_group=st.tuples(st.integers(1, 4), st.integers(1, 3)),
    groups=st.integers(1, 3),
    zero=st.integers(-128, 127),
    residual=st.booleans(),
)
def test_convolutions(window, kernel, per_group, groups, zero, residual):
    size = (8, 7)
    out = [
        (size[i] + window["pads"][i] + window["pads"][i + 2]
         - window["dilations"][i] * (kernel[i] - 1) - 1) // window["strides"][i] + 1
        for i in range(2)
    ]  # fmt: skip
    assume(min(out) > 0)
    c, o = per_group[0] * groups, per_group[1] * groups
    constants = {
        "w": RNG.integers(-128, 128, (o, per_group[0], *kernel)).astype(np.int8),
        "b": RNG.integers(-5000, 5000, o).astype(np.int32),
    }
    scale = tuple(float(np.float32(s)) for s in RNG.uniform(0.0005, 0.02, o))
    values = {
        "name": "n", "data": "x", "weight": "w", "bias": "b", "output": "y", "groups": groups,
        "zeros": (zero,), "requant": Requant(scale, 5, -100, 101), **window,
    }  # fmt: skip
    types = {"x": (I8, 2, c, *size), "y": (I8, 2, o, *out)}
    if residual:
        types["r"] = types["y"]
        total = Requant((0.7, 1.3), 3, 3)
        addition = ops.AddStep(addend="r", zeros=(5, -4), requant=total)
        node = ops.QConv2d(**values, epilogue=(addition,))
    else:
        node = ops.QConv2d(**values)
    check(node, types, constants)


def test_float_convolution_and_runtime_weight():
    node = ops.Conv2d(
        name="n", data="x", weight="w", bias="b", output="y", pads=(1, 1, 1, 1), strides=(2, 1)
    )
    types = {"x": (F, 1, 4, 7, 6), "y": (F, 1, 3, 4, 6)}
    w = RNG.standard_normal((3, 4, 3, 3)).astype(np.float32)
    b = RNG.standard_normal(3).astype(np.float32)
    check(node, types, {"w": w, "b": b}, exact=False)
    check(node, {**types, "w": (F, 3, 4, 3, 3)}, {"b": b}, exact=False)


@pytest.mark.parametrize("data", [(3, 40), (3, 40, 1, 1)])
def test_dense(data):
    constants = {
        "w": RNG.integers(-128, 128, (9, 40)).astype(np.int8),
        "b": RNG.integers(-5000, 5000, 9).astype(np.int32),
    }
    node = ops.QDense(
        name="n", data="x", weight="w", bias="b", output="y", zeros=(-7,),
        requant=Requant((0.003,) * 9, 2, -120),
    )  # fmt: skip
    check(node, {"x": (I8, *data), "y": (I8, 3, 9)}, constants)


def test_float_dense():
    node = ops.Dense(name="n", data="x", weight="w", output="y")
    w = RNG.standard_normal((9, 40)).astype(np.float32)
    check(node, {"x": (F, 3, 40), "y": (F, 3, 9)}, {"w": w}, exact=False)


@settings(max_examples=8)
@given(window=WINDOWS, kernel=st.tuples(st.integers(2, 4), st.integers(2, 4)), pad=st.booleans())
def test_pools(window, kernel, pad):
    window = {**window, "pads": tuple(min(p, 1) for p in window["pads"])}
    out = [
        (8 + window["pads"][i] + window["pads"][i + 2]
         - window["dilations"][i] * (kernel[i] - 1) - 1) // window["strides"][i] + 1
        for i in range(2)
    ]  # fmt: skip
    assume(min(out) > 0)
    common = {"name": "n", "data": "x", "output": "y", "kernel": kernel, **window}
    integer = {"x": (I8, 1, 3, 8, 8), "y": (I8, 1, 3, *out)}
    real = {"x": (F, 1, 3, 8, 8), "y": (F, 1, 3, *out)}
    check(ops.QMaxPool(**common), integer)
    check(ops.MaxPool(**common), real)
    mean = ops.AvgPool(**common, include_pad=pad)
    requant = Requant((pool_scale(0.11, 0.07, mean.multiple((1, 3, 8, 8))),), -2)
    check(ops.QAvgPool(**mean.values(), zeros=(3,), requant=requant), integer)
    check(mean, real, exact=False)


def test_element_wise():
    image = {"x": (I8, *IMAGE), "y": (I8, *IMAGE)}
    check(
        ops.QClip(name="n", data="x", output="y", zeros=(4,), requant=Requant((0.77,), -9, -9)),
        image,
    )
    add = ops.QAdd(
        name="n", a="x", b="z", output="y", zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99)
    )
    check(add, {**image, "z": (I8, *IMAGE)})
    least = QMinimum(
        name="n", a="x", b="z", output="y", zeros=(3, -8), requant=Requant((0.31, 1.7), 1, high=99)
    )
    check(least, {**image, "z": (I8, *IMAGE)})
    real = {"x": (F, *IMAGE), "y": (F, *IMAGE)}
    check(ops.Relu(name="n", data="x", output="y"), real)
    check(ops.Clip(name="n", data="x", output="y", low=-1.0, high=np.inf), real)
    check(ops.Add(name="n", a="x", b="z", output="y"), {**real, "z": (F, 5, 1, 1)})
    vectors = {k: RNG.standard_normal(5).astype(np.float32) for k in "fo"}
    node = ops.BatchNorm(name="n", data="x", factor="f", offset="o", output="y")
    check(node, real, vectors, exact=False)


@pytest.mark.parametrize("function", ops.Unary.FUNCTIONS)
def test_unary(function):
    node = ops.Unary(name="n", data="x", output="y", function=function, alpha=0.3, beta=0.4)
    x = RNG.uniform(0.1, 3, (3, 7)).astype(np.float32)
    if function not in ("log", "sqrt"):
        x -= 1.5
    check(node, {"y": (F, 3, 7)}, {"x": x}, exact=False)


@pytest.mark.parametrize("function", ops.Binary.FUNCTIONS)
def test_binary(function):
    node = ops.Binary(name="n", a="x", b="z", output="y", function=function)
    z = RNG.uniform(0.5, 2, (5, 1, 1)).astype(np.float32)
    x = RNG.uniform(0.5, 2, IMAGE).astype(np.float32) - np.float32(function != "pow")
    check(node, {"y": (F, *IMAGE)}, {"x": x, "z": z}, exact=False)


@pytest.mark.parametrize(("shape", "axis"), [((3, 10), 1), ((2, 4, 3, 3), 1), ((7,), 0)])
def test_softmax(shape, axis):
    node = ops.Softmax(name="n", data="x", output="y", axis=axis)
    check(node, {"x": (F, *shape), "y": (F, *shape)}, exact=False)


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_concat(axis):
    shapes = {k: [*IMAGE] for k in "ab"}
    shapes["b"][axis] = 2
    total = [*IMAGE]
    total[axis] += 2
    node = ops.QConcat(
        name="n",
        parts=("a", "b"),
        output="y",
        axis=axis,
        zeros=(4, -1),
        requant=Requant((1.0, 0.6), 4),
    )
    check(node, {"a": (I8, *shapes["a"]), "b": (I8, *shapes["b"]), "y": (I8, *total)})
    node = ops.Concat(name="n", parts=("a", "b"), output="y", axis=axis)
    check(node, {"a": (F, *shapes["a"]), "b": (F, *shapes["b"]), "y": (F, *total)})


@pytest.mark.parametrize("count", [17, 40, 700])
def test_concat_of_many_parts(count):
    """No deeper in the expression than Python's stack, however many steps a sequence has."""
    parts = {f"p{n}": (F, 2, 1 + n % 3) for n in range(count)}
    total = sum(width for _, _, width in parts.values())
    node = ops.Concat(name="n", parts=tuple(parts), output="y", axis=1)
    check(node, {**parts, "y": (F, 2, total)})


def test_shapes():
    check(ops.QReshape(name="n", data="x", output="y"), {"x": (I8, *IMAGE), "y": (I8, 10, 42)})
    check(ops.Reshape(name="n", data="x", output="y"), {"x": (F, *IMAGE), "y": (F, 420)})
    perm = {"name": "n", "data": "x", "output": "y", "perm": (0, 2, 3, 1)}
    check(ops.QTranspose(**perm), {"x": (I8, *IMAGE), "y": (I8, 2, 7, 6, 5)})
    check(ops.Transpose(**perm), {"x": (F, *IMAGE), "y": (F, 2, 7, 6, 5)})
    n, c, h, w = IMAGE
    out = n, c, 2 * h, 3 * w
    places = *range(n), *range(c), *(i // 2 for i in range(2 * h)), *(i // 3 for i in range(3 * w))
    node = ops.QTake(name="n", data="x", output="y", shape=out, places=places)
    check(node, {"x": (I8, *IMAGE), "y": (I8, *out)})


def small_network():
    m = QdqModel(1)
    x = m.conv(m.input("x", (1, 3, 6, 6)), 4, 3, activation="Relu")
    m.output(m.dense(m.flatten(m.max_pool(x, 2, 2)), 3))
    return optimize(import_model(m.model()))


def test_interpreter_and_native_code_agree_with_the_reference():
    graph = small_network()
    values = {"x": RNG.standard_normal((1, 3, 6, 6)).astype(np.float32), **graph.constants}
    want = evaluate(graph, {"x": values["x"]})
    for node in graph.nodes:
        for interpret in (False, True):
            got = run_kernel(graph, node, want, interpret)
            np.testing.assert_array_equal(got, want[node.output])


def test_a_kernels_name():
    graph = small_network()
    node = graph.nodes[1]
    assert node_function(node, graph).func.name == symbol_of("host_", node) == "host_conv4"


def test_equal_functions_are_shared_and_names_stay_apart():
    m = QdqModel(1)
    x = m.input("x", (1, 4, 4, 4), 0.5)
    m.output(m.max_pool(m.max_pool(x, 1, 1), 1, 1))
    graph = optimize(import_model(m.model()))
    kernels = node_functions(graph, place(graph, [ProcessorTarget(alone=True)]))
    pools = [k for n, k in kernels.items() if n.startswith("maxpool")]
    assert len(pools) == 2
    assert pools[0].func is pools[1].func
    assert pools[0].args != pools[1].args


def test_boundary_copies_of_a_laid_out_graph_compile():
    graph = small_network()
    config = type("C", (), {"block_in": 4, "block_out": 4})()
    laid, places = layout(graph, place(graph, Options().targets(config)), 4)
    x = {"x": RNG.standard_normal((1, 3, 6, 6)).astype(np.float32)}
    values = evaluate(laid, x)
    for node in laid.nodes:
        if places[node.name].device == "cpu":
            np.testing.assert_array_equal(run_kernel(laid, node, values), values[node.output])
