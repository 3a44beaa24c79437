"""Tensors of 16 bits: bytes that are exact, and sums that become 16 bits without overflow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.graph.infer import verify
from vdla.compiler.graph.ir import Graph, GraphError
from vdla.compiler.graph.ops.wide import (
    AFTER_BITS,
    MOST,
    Dequantize16,
    QBytes,
    Quantize16,
    QWideConv2d,
    QWideSum,
    Steps16,
    weights_of,
)
from vdla.compiler.graph.reference import evaluate
from vdla.compiler.graph.types import Requant, TensorType

NAMES = {"name": "n", "output": "y"}


def graph_of(node, arrays, kind, constants=()):
    """A graph of a node that reads ``arrays``, of which some are constants."""
    tensors = {name: TensorType(a.shape, str(a.dtype)) for name, a in arrays.items()}
    inputs = tuple(name for name in arrays if name not in constants)
    known = {name: arrays[name] for name in constants}
    return verify(Graph(inputs, ("y",), (node,), {**tensors, "y": kind}, known))


def result_of(node, arrays, kind, constants=()):
    graph = graph_of(node, arrays, kind, constants)
    return evaluate(graph, {name: arrays[name] for name in graph.inputs})["y"]


def test_bytes_are_the_whole():
    whole = np.arange(-MOST, MOST + 1, dtype=np.int32).reshape(1, 1, -1)
    both = result_of(
        QBytes(**NAMES, data="x"), {"x": whole}, TensorType((2, 1, 2 * MOST + 1), "int8")
    )
    low, high = both.astype(int)
    np.testing.assert_array_equal(256 * high + low, whole[0])


SCALES = st.floats(1e-9, 500).filter(lambda scale: scale > 0)
LIMITS = st.tuples(st.integers(-MOST, MOST), st.integers(-MOST, MOST)).map(sorted).map(tuple)


@settings(max_examples=300)
@given(SCALES, LIMITS, st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=20))
def test_sums_become_sixteen_bits(scale, limits, sums):
    """Near the real number, within the limits, and no int32 overflows on the way."""
    steps = Steps16.of(np.array([scale]), limits)
    low, high, before, factor = (int(each[0]) for each in vars(steps).values())
    for total in (*sums, 0, round(limits[0] / scale), round(limits[1] / scale)):
        total = int(np.clip(total, -(2**31), 2**31 - 1))
        scaled = (min(max(total, low), high) >> before) * factor + (1 << (AFTER_BITS - 1))
        assert -(2**31) <= scaled < 2**31
        assert abs(factor) < 1 << 24
        result = scaled >> AFTER_BITS
        assert limits[0] <= result <= limits[1] or not limits[0] <= 0 <= limits[1]
        wanted = float(np.clip(total * scale, *limits))
        of_factor = abs(total * scale) / max(2 * factor, 1)
        if limits[0] <= 0 <= limits[1]:
            assert abs(result - wanted) <= 1.5 + scale * 2.0**before + of_factor


def test_a_unit_of_sums_that_no_factor_holds():
    with pytest.raises(GraphError, match="expected sums in units below 512 steps, found 600"):
        Steps16.of(np.array([1.0, 600.0]), (-MOST, MOST))


@settings(max_examples=100)
@given(st.lists(st.floats(1e-6, 1000), min_size=1, max_size=2))
def test_weights_of_terms_fit_and_are_near(scales):
    weights, shift = weights_of(scales)
    largest = sum(abs(weight) * MOST for weight in weights) + (1 << shift >> 1)
    assert largest < 2**31
    for weight, scale in zip(weights, scales, strict=True):
        assert abs(weight / 2**shift - scale) <= max(max(scales) * 2**-13, 2.0 ** -(shift + 1))


def test_terms_that_no_weight_holds():
    with pytest.raises(GraphError, match="expected terms in units below 16384 steps"):
        weights_of([1.0, 2e4])


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32"])
def test_real_numbers_and_back(dtype):
    zero = {"int16": -7, "uint16": 30000, "int32": 0}[dtype]
    low, high = (-MOST, MOST) if dtype == "int32" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = np.random.default_rng(0).normal(0, 3, (2, 3, 4, 5)).astype(np.float32)
    x[0, 0, 0, 0], x[0, 0, 0, 1] = 1e9, -1e9
    numbers = {"scale": (2e-3,), "zero_point": (zero,)}
    node = Quantize16(**NAMES, data="x", low=low, high=high, **numbers)
    steps = result_of(node, {"x": x}, TensorType(x.shape, dtype))
    assert (steps.dtype, steps.max(), steps.min()) == (dtype, high, low)
    back = Dequantize16(**NAMES, data="x", **numbers)
    real = result_of(back, {"x": steps}, TensorType(x.shape, "float32"))
    assert np.abs(real - x).reshape(-1)[2:].max() <= 1.001e-3


def product(data, weight, **fields):
    """A product of data of 16 bits, or of int8, and what it is in floats."""
    both = data.dtype == np.int32
    bias = np.zeros((2, len(weight)) if both else len(weight), np.int32)
    if both:
        bias[0] = 128  # rounds the low byte's shift
    arrays = {"x": data, "w": weight, "b": bias, **fields.pop("rows", {})}
    if both:
        kind = TensorType((2 * len(data), *data.shape[1:]), "int8")
        arrays["x"] = result_of(QBytes(**NAMES, data="x"), {"x": data}, kind)
    node = QWideConv2d(**NAMES, data="x", weight="w", bias="b", bytes=both, **fields)
    kind = TensorType(
        fields.pop("shape", (len(data), len(weight))), "int8" if node.requant else "int32"
    )
    return result_of(node, arrays, kind, [name for name in arrays if name != "x"])


@pytest.mark.parametrize("both", [True, False], ids=["bytes", "int8"])
@pytest.mark.parametrize("wide", [True, False], ids=["to 16", "to 8"])
def test_products_are_near_the_real_ones(both, wide):
    rng = np.random.default_rng(4)
    limit, dtype = (MOST, np.int32) if both else (127, np.int8)
    data = rng.integers(-limit, limit + 1, (3, 40)).astype(dtype)
    weight = rng.integers(-127, 128, (7, 40)).astype(np.int8)
    exact = data.astype(float) @ weight.T.astype(float)
    ends = MOST if wide else 127
    scale = ends / np.abs(exact).max(0) * 0.9
    unit = scale * (256 if both else 1)
    if wide:
        steps = vars(Steps16.of(unit, (-MOST, MOST)))
        names = {name: name for name in steps}
        result = product(data, weight, rows=steps, **names)
    else:
        result = product(data, weight, requant=Requant(tuple(np.float32(unit).tolist()), 0))
    error = np.abs(result - exact * scale)
    assert error.max() <= (5 if wide else 0.51)
    assert np.abs(result).max() > 0.8 * ends


def test_shapes_that_do_not_fit():
    data, weight = np.zeros((2, 5), np.int8), np.zeros((3, 5), np.int8)
    with pytest.raises(GraphError, match="expected 4 rows of 3 numbers, or a requantization"):
        product(data, weight)
    with pytest.raises(GraphError, match=r"expected data of shape \[N, 5\], found \[2, 4\]"):
        product(data[:, :4], weight, requant=Requant((1.0,) * 3, 0))
    terms = {"a": data, "b": data[:1]}
    node = QWideSum(**NAMES, terms=("a", "b"), zeros=(0, 0), weights=(1, 1), shift=0)
    with pytest.raises(GraphError, match="expected one or two operands of one shape"):
        graph_of(node, terms, TensorType((2, 5), "int32"))
