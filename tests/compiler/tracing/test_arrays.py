"""Arrays without values say what they are, and what they can't be."""

from __future__ import annotations

import numpy as np
import pytest

import vdla

X = np.ones((2, 3), np.float32)
UNKNOWN = "a Python value: expected a value known while the function is traced, found "
STAY = "; arrays stay arrays: np.take and x[i] take them as indices, astype converts them"
KNOWN = (
    "(all, amax, amin, any, argmax, argmin, broadcast_to, clip, concatenate, cumsum, dot, "
    "expand_dims, full_like, max, mean, min, ndim, ones_like, prod, ravel, reshape, shape, size, "
    "split, squeeze, stack, sum, swapaxes, take, transpose, where, zeros_like)"
)


def test_what_it_says():
    texts = []

    @vdla.fn
    def f(x):
        y = x + 1
        texts.extend(map(repr, (x, y, y.shape, y.dtype, y.ndim, y.size, len(y), y.value)))
        texts.append(repr(y.T.shape))
        assert len({x, y}) == 2
        return y

    f.graph(X)
    assert texts == [
        "Array(x: float32[2, 3])", "Array(f.add: float32[2, 3])", "(2, 3)", "dtype('float32')", "2",
        "6", "2", "None", "(3, 2)",
    ]  # fmt: skip


def test_methods_are_numpys_functions(by_graph):
    by_graph(
        lambda x: (
            x.sum(0), x.mean(), x.prod(axis=1), x.max(1), x.min(), x.cumsum(1), x.argmax(0),
            x.argmin(), x.clip(0, 1), x.take([0], axis=1), x.ravel(), x[None].squeeze(),
            x.transpose(), x.transpose(1, 0), x.transpose((0, 1)), x.reshape(3, 2), x.reshape((6,)),
            x.ravel().transpose(0), x.astype("int8"),
        ),
        X,
    )  # fmt: skip


def test_names_are_given_once():
    graph = vdla.fn(lambda x: [x + n for n in range(3)]).graph(X)
    assert [node.name for node in graph.nodes] == [
        "function.add", "function.add2", "function.add3",
    ]  # fmt: skip


def test_an_array_is_one_constant_however_often_it_is_used():
    graph = vdla.fn(lambda x: x + X + X).graph(X)
    assert len(graph.constants) == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x if x.sum() > 0 else -x, UNKNOWN + "bool[]; vdla.cond, vdla.while_loop and "
         "np.where decide by arrays"),
        (lambda x: float(x[0, 0]), UNKNOWN + "float32[]" + STAY),
        (lambda x: range(x.argmax()), UNKNOWN + "int64[]" + STAY),
        (lambda x: np.asarray(x), UNKNOWN + "float32[2, 3]" + STAY),
        (lambda x: [*x[0, 0]], "len: expected an array with axes, found float32[]"),
        (lambda x: np.fft.fft(x), "np.fft.fft: expected a function of numpy's that is traced "
         f"{KNOWN}, found np.fft.fft"),
        (lambda x: np.add.reduce(x), "np.add.reduce: expected a function of numpy's that is "
         "traced, found np.add.reduce"),
        (lambda x: np.hypot(x, x), "np.hypot: expected a function of numpy's that is traced, found "
         "np.hypot"),
        (lambda x: np.exp(x, out=np.zeros(3)), "np.exp: expected a function of numpy's that is "
         "traced, found np.exp with out"),
        (lambda x: np.sum(x, where=True), "np.sum: expected arguments that are traced, found an "
         "unexpected keyword argument 'where'"),
        (lambda x: x + "a", "an array: expected numbers, found str"),
    ],
)  # fmt: skip
def test_what_is_refused(function, message):
    with pytest.raises(vdla.UserError) as error:
        vdla.fn(function).graph(X)
    where, _, rest = str(error.value).partition(": ")
    assert rest == message
    assert where.startswith("test_arrays.py:")
