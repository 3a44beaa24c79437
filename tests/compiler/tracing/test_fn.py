"""Traced functions: once for each signature, one in another, and those that call themselves."""

from __future__ import annotations

import threading
from collections import namedtuple

import numpy as np
import pytest

import vdla
from vdla.compiler.graph import ops
from vdla.compiler.graph.printer import format_graph
from vdla.runtime.module import Module

X = np.array([0.5, -1.5, 2.0], np.float32)
Pair = namedtuple("Pair", ["a", "b"])


@vdla.fn(returns=lambda n: n)
def factorial(n):
    return vdla.cond(n <= 1, lambda: n * 0 + 1, lambda: n * factorial(n - 1))


@vdla.fn(returns=lambda x, n: x)
def power(x, n):
    def halves():
        half = power(x, n // 2)
        return half * half * np.where(n % 2 == 1, x, 1)

    return vdla.cond(n == 0, lambda: np.ones_like(x), halves)


@vdla.fn(returns=lambda node, children, values: values[0])
def total(node, children, values):
    """The sum of a tree's values, below a node."""

    def below():
        left, right = children[node, 0], children[node, 1]
        return total(left, children, values) + total(right, children, values)

    return values[node] + vdla.cond(children[node, 0] >= 0, below, lambda: np.float32(0))


@vdla.fn(returns=lambda n: n > 0)
def is_even(n):
    return vdla.cond(n == 0, lambda: n == 0, lambda: is_odd(n - 1))


@vdla.fn(returns=lambda n: n > 0)
def is_odd(n):
    return vdla.cond(n == 0, lambda: n != 0, lambda: is_even(n - 1))


def test_it_is_traced_once_for_each_signature():
    traces = []

    @vdla.fn
    def twice(x, times=2):
        traces.append(x.shape)
        return x * times

    for _ in range(2):
        np.testing.assert_array_equal(twice(X), 2 * X)
    np.testing.assert_array_equal(twice(X[:2]), 2 * X[:2])
    np.testing.assert_array_equal(twice(X, times=3), 3 * X)
    np.testing.assert_array_equal(twice(X.astype(int), 3), 3 * X.astype(int))
    assert traces == [(3,), (2,), (3,), (3,)]


def test_arguments_and_results_nest():
    @vdla.fn
    def f(pair, *rest, scale):
        return {"sum": pair.a + pair.b["x"], "rest": [r * scale for r in rest], "none": None}

    result = f(Pair(X, {"x": X}), X, X[:1], scale=np.float32(2))
    assert list(result) == ["none", "rest", "sum"]
    np.testing.assert_array_equal(result["sum"], 2 * X)
    np.testing.assert_array_equal(result["rest"][1], [1])
    graph = f.graph(Pair(X, {"x": X}), X, X[:1], scale=np.float32(2))
    assert graph.inputs == ("pair.a", "pair.b.x", "rest", "rest2", "scale")


def test_a_constant_and_an_argument_come_back():
    assert vdla.fn(lambda x: (x, X, 3))(X)[2] == 3
    assert vdla.fn(lambda x: None)(X) is None
    np.testing.assert_array_equal(vdla.fn(lambda: X * 1)(), X)


def test_the_graph_is_read_as_a_text():
    @vdla.fn
    def step(x, w):
        return np.tanh(x @ w + 1)

    assert format_graph(step.graph(X[None], np.ones((3, 2), np.float32))) == (
        "graph step\n"
        "  input x : float32[1, 3]\n"
        "  input w : float32[3, 2]\n"
        "  constant step.constant : float32[]\n"
        "  output step.tanh\n"
        "  step.matmul: step.matmul = MatMul(x, w) : float32[1, 2]\n"
        "  step.add: step.add = Add(step.matmul, step.constant) : float32[1, 2]\n"
        '  step.tanh: step.tanh = Unary(step.add) function="tanh" alpha=0.0 beta=0.0'
        " : float32[1, 2]\n"
    )


def test_a_function_in_another_is_written_out():
    inner = vdla.fn(lambda x: x + 1)
    graph = vdla.fn(lambda x: inner(x) * inner(x)).graph(X)
    assert len(graph.nodes) == 3
    assert not graph.functions


def test_a_named_function_is_there_once():
    graph = vdla.fn(lambda n: factorial(n) + factorial(n + 1)).graph(np.int64(3))
    assert list(graph.functions) == ["factorial"]
    assert [call.function for call in graph.of(ops.Call)] == ["factorial"] * 2


@pytest.mark.parametrize("n", [0, 1, 7])
def test_recursion(n, by_graph):
    by_graph(factorial, np.int64(n))
    by_graph(power, X, np.int64(n))
    by_graph(is_even, np.int64(n))


def tree():
    """Children of each node, -1 for none, and values."""
    children = np.array([[1, 2], [3, 4], [-1, -1], [-1, -1], [-1, -1]])
    return children, np.arange(5, dtype=np.float32)


def test_a_tree_by_recursion(by_graph):
    by_graph(total, np.int64(0), *tree())


def test_recursion_on_devices(by_device):
    by_device(lambda n: factorial(n) + factorial(n - 1), np.int64(6))
    by_device(lambda x, n: power(x, n), X, np.int64(5))
    by_device(lambda node, *rest: total(node, *rest), np.int64(0), *tree())
    by_device(lambda n: is_odd(n), np.int64(7))


def test_recursion_too_deep():
    message = "expected at most 1,000 calls inside one another, found more"
    with pytest.raises(vdla.UserError, match=message):
        factorial(np.int64(2000))


def test_recursion_in_a_loop_and_a_loop_in_recursion(by_graph):
    @vdla.fn(returns=lambda n, x: x)
    def down(n, x):
        grown = vdla.scan(lambda s, v: (s + v, None), x, np.ones(3, np.float32))[0]
        return vdla.cond(n == 0, lambda: x, lambda: down(n - 1, grown))

    by_graph(lambda x: vdla.scan(lambda s, n: (down(n, s), s), x[0], np.arange(3)), X)


def test_a_module_for_another_device():
    function = vdla.fn(lambda x: np.exp(x))
    module = function.compile(X, device="sim", config="tiny")
    assert isinstance(module, Module)
    result = vdla.run(module, {"x": X}).outputs
    np.testing.assert_allclose(next(iter(result.values())), np.exp(X), rtol=1e-6)


def test_threads_trace_apart():
    results = []
    threads = [
        threading.Thread(target=lambda n=n: results.append((n, vdla.fn(lambda x: x + n)(X)[0])))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(n, n + 0.5) for n in range(4)]


def endless(n):
    return vdla.cond(n == 0, lambda: n, lambda: unstated(n - 1))


unstated = vdla.fn(endless)
KEPT = []


@vdla.fn
def growing(x, n):
    return growing(x, n + 1)


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (unstated, (np.int64(1),), "endless: expected a function that calls itself to say what it "
         "returns, found nothing; @vdla.fn(returns=lambda x: x) says that it is what x is"),
        (growing, (X, 0), "growing: expected at most 50 calls inside one another, found more, each "
         "of other shapes or Python numbers"),
        (vdla.fn(lambda x: KEPT[0] + x), (X,), "function: expected arrays of the function that is "
         "traced, found Array(x: float32[3]) of another one; pass it as an argument"),
        (vdla.fn(lambda x: vdla.fn(returns=lambda y: y)(lambda y: x)(x)), (X,), "function2: "
         "expected arrays of the function that is traced, found Array(x: float32[3]) of another "
         "one; pass it as an argument"),
        (vdla.fn(returns=lambda x: x[0])(lambda x: x), (X,), "function: expected result to be "
         "float32[], as returns says, found float32[3]"),
        (vdla.fn(returns=lambda x: None)(lambda x: x), (X,), "function: expected a function that "
         "returns an array, found none"),
        (vdla.fn(lambda x: x), ({1},), "function: expected arrays, numbers and what has a hash, "
         "found set"),
        (vdla.fn(lambda x: "text"), (X,), "an array: expected numbers, found str"),
    ],
)  # fmt: skip
def test_what_is_refused(function, args, message):
    vdla.fn(lambda x: KEPT.append(x)).graph(X)
    with pytest.raises(vdla.UserError) as error:
        function.graph(*args)
    where, _, rest = str(error.value).partition(": ")
    assert rest == message
    assert where.startswith("test_fn.py:")


def test_no_such_device():
    with pytest.raises(vdla.UserError, match="device: expected one of sim, rtl, cpu, gpu, found x"):
        vdla.fn(device="x")(lambda x: x)(X)
