"""Types that are only stored: every code and every rounding as ml_dtypes has it, in native code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.ops.op_cast import cast_to

from vdla.compiler.build import Options, compile_graph
from vdla.compiler.frontend import import_model
from vdla.compiler.graph.parser import parse_graph
from vdla.compiler.graph.printer import format_graph
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.targets.processor.description.processor import Processor
from vdla.isa.config import load_config
from vdla.runtime.dtypes import STORED, dtype_of
from vdla.runtime.executor import Executor

COUNT = 256
FEW = settings(max_examples=40, deadline=None)


def code(dtype):
    return helper.np_dtype_to_tensor_dtype(dtype_of(dtype))


def imported(nodes, inputs, outputs, constants=None):
    """The graph of nodes; inputs and outputs are dtypes and shapes by name."""
    ends = [
        [helper.make_tensor_value_info(n, code(dtype), shape) for n, (dtype, shape) in side.items()]
        for side in (inputs, outputs)
    ]
    weights = [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", *ends, weights)
    opsets = [helper.make_opsetid("", 25)]
    return import_model(helper.make_model(graph, opset_imports=opsets), "m")


def runner(graph):
    """What runs a graph as native code, and as numpy; both have to agree."""
    module = compile_graph(
        graph, load_config("tiny"), Options("cpu", processor=Processor(quick=True))
    )
    ready = Executor(module)

    def run(**inputs):
        (found,) = ready.run(inputs).outputs.values()
        wanted = evaluate(graph, inputs)[graph.outputs[0]]
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(bits(found), bits(wanted))
        return found

    return run


def bits(array):
    return array.view(f"u{array.dtype.itemsize}")


def caster(source, target, **attributes):
    node = helper.make_node("Cast", ["x"], ["y"], to=code(target), **attributes)
    return runner(imported([node], {"x": (source, [COUNT])}, {"y": (target, [COUNT])}))


@pytest.fixture(scope="module")
def encoders():
    return {dtype: caster("float32", dtype) for dtype in STORED if "int" not in dtype}


@FEW
@given(st.data())
def test_floats_are_rounded_as_onnx_says(encoders, data):
    """Any bits: halfway cases, numbers beyond the type's, infinities, NaN."""
    raw = data.draw(st.binary(min_size=4 * COUNT, max_size=4 * COUNT))
    near = data.draw(st.integers(0, 3))  # bits that stand for a half, or almost
    lower = {0: 0x7FFF, 1: 0x8000, 2: 0x8001}.get(near)
    patterns = np.frombuffer(raw, np.uint32).copy()
    if lower is not None:
        patterns = patterns & 0xFFFF0000 | np.uint32(lower)
    values = patterns.view(np.float32)
    for dtype, encode in encoders.items():
        with np.errstate(all="ignore"):
            wanted = cast_to(values, code(dtype), saturate=True, round_mode="up")
        found, number = encode(x=values).astype("f4"), wanted.astype("f4")
        np.testing.assert_array_equal(found, number, err_msg=dtype)
        same = np.isnan(number) | (np.signbit(found) == np.signbit(number))
        assert same.all(), dtype


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz"])
def test_without_saturation_what_is_too_large_is_no_number(dtype):
    values = np.array([1e9, -1e9, np.inf, 3.0] * (COUNT // 4), np.float32)
    found = caster("float32", dtype, saturate=0)(x=values)
    np.testing.assert_array_equal(found.astype("f4"), values.astype(dtype_of(dtype)).astype("f4"))
    assert not np.isfinite(found.astype("f4"))[:3].any()


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two_round_by_their_mode(mode):
    values = np.abs(np.random.default_rng(0).standard_normal(COUNT)).astype("f4")
    found = caster("float32", "float8_e8m0fnu", round_mode=mode)(x=values)
    wanted = numpy_helper.to_float8e8m0(values, True, mode)
    np.testing.assert_array_equal(bits(found), bits(wanted))


@pytest.mark.parametrize("dtype", STORED)
def test_every_code_has_its_number(dtype):
    size = dtype_of(dtype).itemsize
    codes = np.arange(1 << 8 * size, dtype=f"u{size}")[:: 255 if size > 1 else 1][:COUNT]
    data = codes.view(dtype_of(dtype))
    np.testing.assert_array_equal(caster(dtype, "float32")(x=data), data.astype("f4"))


@pytest.mark.parametrize(("dtype", "count"), [("int4", 16), ("uint4", 16), ("int2", 4)])
def test_integers_keep_their_low_bits(dtype, count):
    values = np.arange(-COUNT // 2, COUNT // 2, dtype=np.int32)
    found = caster("int32", dtype)(x=values).astype(np.int32)
    np.testing.assert_array_equal((found - values) % count, 0)


def test_a_network_of_bfloat16_computes_in_float32_and_stores_each_result():
    rng, kind = np.random.default_rng(1), dtype_of("bfloat16")
    weights, bias = (rng.standard_normal(shape).astype(kind) for shape in ((8, 5), (5,)))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Sigmoid", ["s"], ["y"]),
    ]
    graph = imported(
        nodes, {"x": ("bfloat16", [4, 8])}, {"y": ("bfloat16", [4, 5])}, {"w": weights, "b": bias}
    )
    x = rng.standard_normal((4, 8)).astype(kind)
    product = (x.astype("f4") @ weights.astype("f4")).astype(kind).astype("f4")
    total = (product + bias.astype("f4")).astype(kind).astype("f4")
    wanted = (1 / (1 + np.exp(-total))).astype(kind).astype("f4")
    found = runner(graph)(x=x)
    assert found.dtype == kind
    np.testing.assert_allclose(found.astype("f4"), wanted, rtol=2**-7)


def test_results_of_another_type_are_not_stored_again():
    node = helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
    graph = imported([node], {"x": ("bfloat16", [2, 3])}, {"y": ("int64", [2])})
    x = np.array([[1, 3, 2], [5, 4, 0]]).astype(dtype_of("bfloat16"))
    np.testing.assert_array_equal(runner(graph)(x=x), [1, 0])


@pytest.mark.parametrize(("dtype", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15)])
def test_data_of_four_bits_between_quantize_and_dequantize(dtype, low, high):
    scale, zero = np.array([0.5, 0.25], "f4"), np.array([1, 2]).astype(dtype_of(dtype))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1),
    ]
    ends = {"x": ("float32", [3, 2])}, {"y": ("float32", [3, 2])}
    graph = imported(nodes, *ends, {"s": scale, "z": zero})
    x = np.array([[0.3, -9], [1.4, 9], [-1.3, 0.125]], "f4")
    steps = np.clip(np.rint(x / scale) + zero.astype("f4"), low, high)
    np.testing.assert_array_equal(runner(graph)(x=x), (steps - zero.astype("f4")) * scale)


def test_the_text_of_a_graph_has_them():
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.BFLOAT16)
    graph = imported([node], {"x": ("float32", [3])}, {"y": ("bfloat16", [3])})
    text = format_graph(graph)
    assert format_graph(parse_graph(text, {})) == text
