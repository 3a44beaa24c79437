"""Operators by elements, of floats, int8 and int16, beside LiteRT's own kernels."""

from __future__ import annotations

import pytest
from tflite_files import Graph, Op, T, file_of, known, one
from tflite_reference import compare

IMAGE = (1, 4, 5, 3)
QUANTIZED = {
    "int8": {"scale": 0.02, "zero": -20},
    "int16": {"scale": 0.0001},
    "uint8": {"scale": 0.015, "zero": 40},
}


def kind(dtype, shape=IMAGE, **more):
    return T(shape, dtype, **{**QUANTIZED.get(dtype, {}), **more})


FLOAT_UNARY = (
    *("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "HARD_SWISH", "LOG", "LOGISTIC", "NEG", "RELU"),
    *("RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ROUND", "RSQRT", "SIGN", "SIN", "SQRT", "SQUARE"),
    *("TANH", "ZEROS_LIKE"),
)


@pytest.mark.parametrize("name", FLOAT_UNARY)
@pytest.mark.parametrize("shape", [IMAGE, (7,), (2, 3, 4)])
def test_functions_of_one_float(name, shape):
    compare(one(name, [T(shape)], [T(shape)]))


@pytest.mark.parametrize("approximate", [False, True])
def test_gelu(approximate):
    compare(one("GELU", [T(IMAGE)], [T(IMAGE)], "GeluOptions", Approximate=approximate))


def test_leaky_relu():
    compare(one("LEAKY_RELU", [T(IMAGE)], [T(IMAGE)], "LeakyReluOptions", Alpha=0.3))


# Rounding in tables of LiteRT's own: one step each way of these, as the docs say.
@pytest.mark.parametrize("name", ["RELU", "RELU6", "RELU_N1_TO_1", "ABS", "ELU", "HARD_SWISH"])
def test_functions_of_one_int8(name):
    scale = {"scale": 0.02, "zero": -20} if name in ("RELU6", "RELU_N1_TO_1", "RELU") else {}
    compare(one(name, [kind("int8")], [kind("int8", **scale)]))


@pytest.mark.parametrize("name", ["LOGISTIC", "TANH"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8"])
def test_tables_with_the_scale_that_tflite_fixes(name, dtype):
    steps = {"int8": 256, "uint8": 256, "int16": 32768}[dtype] / (2 if name == "TANH" else 1)
    if dtype == "int16":
        steps = 32768
    zero = {("int8", "LOGISTIC"): -128, ("uint8", "TANH"): 128}.get((dtype, name), 0)
    data = kind(dtype, scale=0.0005) if dtype == "int16" else kind(dtype)
    compare(one(name, [data], [T(IMAGE, dtype, scale=1 / steps, zero=zero)]))


def test_leaky_relu_of_int8():
    ends = [kind("int8")], [kind("int8", scale=0.013, zero=7)]
    compare(one("LEAKY_RELU", *ends, "LeakyReluOptions", Alpha=0.3))


# Two operands ------------------------------------------------------------------------------------

OPTIONS = {
    "ADD": "AddOptions",
    "SUB": "SubOptions",
    "MUL": "MulOptions",
    "DIV": "DivOptions",
    "MAXIMUM": "",
    "MINIMUM": "",
    "POW": "",
    "SQUARED_DIFFERENCE": "",
    "FLOOR_DIV": "",
    "FLOOR_MOD": "",
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("second", [IMAGE, (3,), (5, 3), (1, 1, 1, 3), (), (4, 1, 1)])
def test_two_floats_that_broadcast(name, second):
    compare(one(name, [T(IMAGE), T(second)], [T(IMAGE)], OPTIONS[name]))


@pytest.mark.parametrize("activation", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL", "DIV"])
def test_fused_activations_of_floats(name, activation):
    ends = [T(IMAGE), T(IMAGE)], [T(IMAGE)]
    compare(one(name, *ends, OPTIONS[name], FusedActivationFunction=activation))


@pytest.mark.parametrize("activation", [0, 1, 2, 3])
@pytest.mark.parametrize("zero", [-128, -7, 90])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_fused_activations_with_zero_points(name, activation, zero):
    ends = [kind("int8"), kind("int8", scale=0.011, zero=3)]
    result = kind("int8", scale=0.04, zero=zero)
    compare(one(name, ends, [result], OPTIONS[name], FusedActivationFunction=activation))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("second", [IMAGE, (3,), (5, 3), (1,)])
@pytest.mark.parametrize("name", ["ADD", "SUB", "MUL"])
def test_two_quantized_that_broadcast(name, dtype, second):
    wide = {"int16": 0.0003, "int8": 0.03, "uint8": 0.03}[dtype]
    ends = [kind(dtype), kind(dtype, second)], [kind(dtype, scale=wide)]
    compare(one(name, *ends, OPTIONS[name]))


@pytest.mark.parametrize("name", ["MAXIMUM", "MINIMUM"])
def test_the_larger_of_int8(name):
    compare(one(name, [kind("int8"), kind("int8", (3,))], [kind("int8")]))


@pytest.mark.parametrize("name", ["FLOOR_DIV", "FLOOR_MOD"])
def test_quotients_of_integers_round_down(name):
    data = known([[-7, -6, -1, 0, 1, 6, 7]] * 2)
    tensors = [T((1,), "int32"), data, known([[3], [-3]]), *[T((2, 7), "int32")] * 2]
    ops = [Op("ADD", [0, 1], [3], "AddOptions"), Op(name, [3, 2], [4])]
    compare(file_of(Graph(tensors, ops, [0], [4])))


def test_floor_mod_of_negative_floats():
    data = known([-7.5, -1.0, 0.0, 1.0, 7.5], "float32")
    compare(one("FLOOR_MOD", [data, T((1,))], [T((5,))]))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_prelu_with_a_slope_for_each_channel(dtype):
    slope = [0.1, -0.2, 0.5] if dtype == "float32" else [-40, 3, 80]
    operand = kind(dtype, (1, 1, 3), data=[[slope]])
    compare(one("PRELU", [kind(dtype), operand], [kind(dtype)]))


@pytest.mark.parametrize("name", ["LOGICAL_AND", "LOGICAL_OR"])
def test_truth_values(name):
    truth = T((2, 3), "bool")
    compare(one(name, [truth, truth], [truth]))


def test_not():
    compare(one("LOGICAL_NOT", [T((5,), "bool")], [T((5,), "bool")]))


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize(
    "name", ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"]
)
def test_comparisons(name, dtype):
    compare(one(name, [kind(dtype), kind(dtype)], [T(IMAGE, "bool")]))


def test_add_n():
    compare(one("ADD_N", [T(IMAGE), T(IMAGE), T(IMAGE)], [T(IMAGE)]))


@pytest.mark.parametrize("name", ["SELECT", "SELECT_V2"])
def test_select(name):
    compare(one(name, [T(IMAGE, "bool"), T(IMAGE), T(IMAGE)], [T(IMAGE)]))


def test_a_row_of_conditions_selects_batches():
    compare(one("SELECT", [T((2,), "bool"), T((2, 3)), T((2, 3))], [T((2, 3))]))


# Changes of type ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_quantize_and_dequantize(dtype):
    compare(one("QUANTIZE", [T(IMAGE)], [kind(dtype)]))
    compare(one("DEQUANTIZE", [kind(dtype)], [T(IMAGE)]))


@pytest.mark.parametrize(
    ("before", "after"), [("int8", "uint8"), ("uint8", "int8"), ("int16", "int8"), ("int8", "int8")]
)
def test_integers_of_another_scale(before, after):
    compare(one("QUANTIZE", [kind(before)], [kind(after, scale=0.03)]))


@pytest.mark.parametrize("after", ["int32", "float32", "bool", "int64"])
@pytest.mark.parametrize("before", ["int32", "float32"])
def test_casts(before, after):
    types = "CastOptions"
    compare(one("CAST", [T((2, 3), before)], [T((2, 3), after)], types))
