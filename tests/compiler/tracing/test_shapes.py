"""numpy's functions of shapes, indices and many elements, traced, give what numpy gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vdla

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7
N = np.array([2, 0, 1, 1])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(6, -1) + x.reshape((6, 4)) + np.reshape(x, (-1, 4)),
        lambda x: (x.ravel(), x.reshape(-1), x.T, x.transpose(1, 0, 2), x.transpose((2, 1, 0))),
        lambda x: (np.swapaxes(x, 0, -1), np.expand_dims(x, 1), np.expand_dims(x, (0, -1))),
        lambda x: (np.squeeze(x[:1]), x[:1].squeeze(0), np.broadcast_to(x[0, 0], (2, 4))),
        lambda x: (np.concatenate([x, x], 1), np.concatenate((x, X)), np.stack([x, x], -1)),
        lambda x: (*np.split(x, 2, 2), *np.split(x, [1, 3], axis=-1)),
        lambda x: (x[0], x[-1, 1], x[:, ::2], x[..., 1:], x[None, 1, ..., -2], x[:, None], x[::-1]),
        lambda x: (x[N % 2], x[:, N], x[[0, 1]], x[:, :, N[:, None]], np.take(x, N), x.take(N, 1)),
        lambda x: (len(x), [row[0] for row in x], x.ndim, x.size, x.shape),
        lambda x: (x.sum(), x.sum(0), x.sum((0, 2)), np.sum(x, axis=-1, keepdims=True)),
        lambda x: (x.mean(1), x.max(), x.min(axis=2), np.prod(x, 0), np.amax(x), np.amin(x, 1)),
        lambda x: (x.argmax(), x.argmin(1), np.argmax(x, axis=2, keepdims=True)),
        lambda x: (np.cumsum(x, 1), x.cumsum(), np.all(x > 0), np.any(x > 0, axis=1)),
        lambda x: ((x > 0).sum(), x.astype("int8").sum(1), x.astype("int32").mean()),
        lambda x: (np.zeros_like(x) + np.ones_like(x), np.full_like(x, 3), np.shape(x), np.ndim(x)),
        lambda x: vdla.set_at(x, 1, x[0]) + vdla.set_at(x, N[:2] % 2, 1),
    ],
)
def test_functions(function, by_graph):
    by_graph(function, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i, n: (x[i], x[:, i], x[i, i], x[:, i, None, 1:], x[..., i]),
        lambda x, i, n: (x[:, n], x[:, n[:, None]], np.take(x, n, axis=-1), x[0][n]),
        lambda x, i, n: vdla.set_at(x[0], n, x[1, :1]) + vdla.set_at(x[0], i, x[0, i] * 2),
        lambda x, i, n: vdla.set_at(x, i, 0),
    ],
)
def test_places_known_at_run_time(function, by_graph):
    by_graph(function, X, np.int64(1), np.array([2, 0, 1]))


def test_on_devices(by_device):
    by_device(lambda x, n: (x[:, n].sum(0), vdla.set_at(x, n[1], x[1]), x.T.cumsum(0)), X, N)


@st.composite
def indices(draw):
    """An index of X."""
    parts = []
    for size in X.shape[: draw(st.integers(0, 3))]:
        kind = draw(st.integers(0, 2))
        if kind == 0:
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == 1:
            parts.append(draw(st.slices(size).filter(lambda s, n=size: len(range(n)[s]))))
        else:
            parts.append(slice(None))
        if draw(st.booleans()):
            parts.append(None)
    return tuple(parts)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(indices())
def test_indices(by_graph, index):
    by_graph(lambda x: x[index], X)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.reshape(5, -1), "reshape: expected a shape of 24 elements, found [5, 4]"),
        (lambda x: x.sum(3), "sum: expected an axis of 3, found 3"),
        (lambda x: x[2], "take: expected indices from -2 to 1, found [2]"),
        (lambda x: x[0, 0, 0, 0], "index: expected at most 3 indices of float32[2, 3, 4], found 4"),
        (lambda x: x[x > 0], "take: expected indices of integers, found bool[2, 3, 4]; np.where "
         "chooses by bools"),
        (lambda x: x[N % 2, 0], "index: expected one array of indices alone, found others; index "
         "one after the other"),
        (lambda x: x[:0], "slice: expected one element at least, found [0, 3, 4]"),
        (lambda x: np.concatenate([x, x[0]]), "concatenate: expected parts that differ from "
         "[2, 3, 4] only in axis 0, found [3, 4]"),
        (lambda x: np.squeeze(x, 0), "squeeze: expected axes of size 1, found [0] of "
         "float32[2, 3, 4]"),
        (lambda x: np.broadcast_to(x, (2, 3)), "broadcast_to: expected a shape that "
         "float32[2, 3, 4] fits, found [2, 3]"),
        (lambda x: np.dot(x, x), "dot: expected arrays of two axes at most, found 3; np.matmul "
         "takes more"),
        (lambda x: vdla.set_at(x, 0.5, x), "set_at: expected indices of integers, found float64[]"),
        (lambda x: np.split(x, 3, 2), "split: expected equal parts of 4 elements, found array "
         "split does not result in an equal division"),
    ],
)  # fmt: skip
def test_what_is_refused(function, message, refusal):
    assert refusal(function, X) == message
