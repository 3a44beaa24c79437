"""numpy's functions of elements, traced, give what numpy gives."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vdla
from vdla.compiler.tracing.arrays import UFUNCS
from vdla.compiler.tracing.elements import NAMES

X = np.array([[0.25, 0.5, -0.75], [1.0, 2.0, -3.0]], np.float32)
Y = np.array([0.5, -2.0, 4.0], np.float32)
I = np.array([[7, -7, 3], [-3, 1, 9]], np.int32)
B = np.array([True, False, True])
ONE = [u for u in UFUNCS if u.nin == 1]
TWO = [u for u in UFUNCS if u.nin == 2 and u is not np.matmul]
DTYPES = ["float32", "float64", "int8", "int32", "int64", "uint8", "bool"]


def takes(ufunc, dtype):
    """Whether numpy's function takes elements of a type, and the graph has its result's."""
    try:
        with np.errstate(all="ignore"):
            return ufunc(*[np.ones((), dtype)] * ufunc.nin) is not None
    except TypeError:
        return False


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", ONE, ids=lambda u: u.__name__)
def test_of_one(ufunc, dtype, by_graph):
    if takes(ufunc, dtype):
        by_graph(lambda x: ufunc(x), np.array([1, 3, 2], dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", TWO, ids=lambda u: u.__name__)
def test_of_two(ufunc, dtype, by_graph):
    if takes(ufunc, dtype):
        by_graph(lambda x, y: ufunc(x, y), np.array([[1, 3, 2]], dtype), np.ones((2, 1), dtype))


def test_all_that_the_graph_has_are_tested():
    assert set(NAMES) <= {*ONE, *TWO}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x + y * 2 - 1,
        lambda x, y: 1 - x / y,
        lambda x, y: x // y + x % y,
        lambda x, y: x**2 + abs(y) ** 0.5,
        lambda x, y: (x < y) | (x >= 1) & ~(y != 2),
        lambda x, y: np.where(x > 0, x, y),
        lambda x, y: np.where(x > 0, x, 0),
        lambda x, y: np.clip(x, -1, 1) + x.clip(0, None),
        lambda x, y: x @ y,
        lambda x, y: y @ y,
        lambda x, y: y @ x.T,
        lambda x, y: x @ x.T + np.dot(x, y)[:, None] + np.dot(np.float32(2), x[:, :2]),
        lambda x, y: X @ y + y[:2],
        lambda x, y: np.matmul(x[None], np.stack([x.T, x.T])),
        lambda x, y: vdla.sigmoid(x) + vdla.relu(y) + vdla.gelu(x) + vdla.erf(x),
        lambda x, y: vdla.softmax(x) + vdla.softmax(x, axis=0),
        lambda x, y: np.float32(2) * x + np.ones(3, np.float32),
        lambda x, y: x.astype(np.int32) // 2 + x.astype("int32") % 3,
    ],
)
def test_operators(function, by_graph):
    by_graph(function, X, Y)


@pytest.mark.parametrize(
    "function",
    [
        lambda i: i // 4 + i % 4,
        lambda i: i // -4 + i % -4,
        lambda i: (i << 2) ^ (i >> 1) | i & 5,
        lambda i: (~i, i / 4),
        lambda i: (i > 0) ^ (i < 5),
        lambda i: np.logical_and(i, i - 1),
    ],
)
def test_integers(function, by_graph):
    by_graph(function, I)


def test_int8_passes_through(by_device):
    by_device(lambda x: (x, x + 1), np.array([1, -2], np.int8))


def test_on_devices(by_device):
    by_device(lambda x, y: np.tanh(x @ X.T) * y[:2] + vdla.sigmoid(x[:, :2]), X, Y)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from([1, 2, 3]), max_size=3), st.data())
def test_shapes_broadcast(by_graph, shape, data):
    other = [data.draw(st.sampled_from([1, n])) for n in shape[data.draw(st.integers(0, 3)) :]]
    by_graph(lambda a, b: a + b * a, np.ones(shape, np.float32), np.ones(other, np.float32))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x + np.ones(3), "add: expected arrays of one element type, found float32[2, 3] "
         "and float64[3]; convert one with astype"),
        (lambda x: x + Y[:2], "add: expected operands of one shape, found [2, 3] and [2]"),
        (lambda x: x @ x, "matmul: expected matrices that fit each other, found [2, 3] and [2, 3]"),
        (lambda x: x @ x.sum(), "matmul: expected arrays with axes, found one without"),
        (lambda x: (x > 0) - (x < 0), "subtract: expected elements that it takes, found bool"),
        (lambda x: x.astype("int8") * 1.5, "a number: expected one that int8 has, found 1.5; "
         "astype converts the array"),
        (lambda x: x.astype("int8") + 300, "a number: expected one that int8 has, found 300; "
         "astype converts the array"),
        (lambda x: np.where(x, x, x), "where: expected a condition of bools, found float32"),
        (lambda x: vdla.sigmoid(x.astype(int)), "sigmoid: expected floats, found int64; convert "
         "with astype"),
        (lambda x: x.astype(complex), "astype: expected one of float32, int8, uint8, int32, int64, "
         "float16, float64, bool, int16, uint16, uint32, uint64, found complex128"),
    ],
)  # fmt: skip
def test_what_is_refused(function, message, refusal):
    assert refusal(function, X) == message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bits": 7}, "dynamic_matmul: expected 8 or 16 bits, found 7"),
        ({"bits": (8, 4)}, "dynamic_matmul: expected 8 or 16 bits, found 4"),
        ({"gradient_bits": 32}, "dynamic_matmul: expected 8 or 16 bits, found 32"),
    ],
)
@pytest.mark.parametrize("traced", [True, False])
def test_bits_of_products(fields, message, traced):
    def product(x):
        return vdla.dynamic_matmul(x, x.T, **fields)

    with pytest.raises(vdla.UserError, match=re.escape(message)):
        (vdla.fn(product) if traced else product)(X)


@pytest.mark.parametrize("traced", [True, False])
def test_products_of_other_elements(traced):
    def product(x):
        return vdla.dynamic_matmul(x, x.T)

    with pytest.raises(vdla.UserError, match="expected factors of float32, found float64"):
        (vdla.fn(product) if traced else product)(X.astype(np.float64))
