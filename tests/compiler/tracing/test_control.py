"""Choices and loops, traced, give what the same functions give with numpy's arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vdla
from vdla.compiler.graph import ops

X = np.array([0.5, -1.5, 2.0], np.float32)
W = np.array([[0.1, 0.2, -0.3], [0.5, -0.1, 0.3], [-0.2, 0.4, 0.6]], np.float32)


@dataclass
class State:
    """Two arrays."""

    h: object
    n: object


def chosen(x):
    """A choice whose regions capture different arrays."""
    y = x * 2
    return vdla.cond(x.sum() > 0, lambda a: (a + y, a), lambda a: (a, x @ W), x)


def counted(x):
    """A loop over a dataclass."""
    return vdla.while_loop(
        lambda s: s.n < 5, lambda s: State(s.h @ W + x, s.n + 1), State(x, np.int64(0))
    )


def recurrent(x):
    """A scan with all that it may have: a state, slices, captured arrays, results."""

    def step(state, row):
        h = np.tanh(row["x"] @ W + state * x)
        return h, (h, {"n": row["n"] + 1})

    return vdla.scan(step, x, {"x": np.stack([x, -x]), "n": np.arange(2)})


def nested_loops(x):
    """A while in a scan, and a scan in a choice."""

    def outer(state, row):
        _, state = vdla.while_loop(
            lambda s: s[0] < 3,
            lambda s: (s[0] + 1, vdla.scan(lambda c, v: (c * 0.5 + v, None), s[1], x)[0]),
            (0, state),
        )
        return state + row, state

    last, rows = vdla.scan(outer, np.float32(1), x)
    rest = vdla.cond(
        last > 100, lambda: rows, lambda: vdla.scan(lambda c, v: (c + v, c * v), last, rows)[1]
    )
    return last, rest


def swapped(x):
    """A loop whose states change places, beside one that stays."""
    return vdla.scan(lambda s, _: ((s[1], s[0], s[2]), s[0]), (x, -x, x * 2), None, length=3)


FUNCTIONS = [
    chosen, counted, recurrent, nested_loops, swapped,
    lambda x: vdla.scan(lambda c, v: (c + v, c), np.float32(0), x, reverse=True),
    lambda x: vdla.scan(lambda c, v: (c, v * 2), None, x)[1],
    lambda x: vdla.scan(lambda c, v: (c + 1, None), 0, None, length=4),
    lambda x: vdla.while_loop(lambda s: s < 0, lambda s: s + 1, x[0]),
    lambda x: vdla.cond(x[0] > 1, lambda: x, lambda: np.zeros_like(x)),
    lambda x: vdla.cond(np.any(x > 1), lambda a: a, lambda a: {"x": -a["x"]}, {"x": x}),
    lambda x: vdla.scan(
        lambda c, i: (vdla.set_at(c, i, c[i - 1] + x[i]), None), x, np.arange(3)
    )[0],
]  # fmt: skip


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_by_graph(function, sign, by_graph):
    by_graph(function, sign * X)


@pytest.mark.parametrize("function", [chosen, nested_loops, recurrent, counted, swapped])
def test_on_devices(function, by_device):
    by_device(function, X)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 40), st.integers(0, 40))
def test_a_loop_ends_as_python_does(by_graph, a, b):
    def divisor(a, b):
        return vdla.while_loop(lambda s: s[1] > 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]

    by_graph(divisor, np.int64(a), np.int64(b))


def test_regions_capture_what_they_read():
    graph = vdla.fn(chosen).graph(X)
    (node,) = graph.of(ops.If)
    assert node.operands == ("chosen.greater", "x", "chosen.multiply")
    assert [region.name for region in node.regions] == ["chosen.cond.then", "chosen.cond.otherwise"]
    assert all(len(region.inputs) == 2 for region in node.regions)
    (constant,) = node.otherwise.constants.values()
    np.testing.assert_array_equal(constant, W)


def test_a_loop_has_a_bound():
    @vdla.fn
    def endless(n):
        return vdla.while_loop(lambda n: n > 0, lambda n: n + 0, n, turns=50)

    assert endless(np.int64(0)) == 0
    message = "loop endless.while_loop: expected an end after at most 50 turns, found none"
    with pytest.raises(vdla.UserError, match=message):
        endless(np.int64(1))
    with pytest.raises(vdla.UserError, match="expected an end after as many turns as it has"):
        endless.__wrapped__(1)


def loop(body, initial=(X, X), condition=lambda s: s[0].sum() > 0, **more):
    return lambda x: vdla.while_loop(condition, body, initial, **more)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (loop(lambda s: (s[0], np.concatenate(s))), "while_loop: expected what turn after turn "
         "gets as state[1] to stay float32[3], found float32[6]"),
        (loop(lambda s: (s[0] > 0, s[1])), "while_loop: expected what turn after turn gets as "
         "state[0] to stay float32[3], found bool[3]"),
        (loop(lambda s: s[0]), "while_loop: expected what turn after turn gets as state to stay "
         "(·, ·), found ·"),
        (loop(lambda s: s, condition=lambda s: True), "while_loop: expected a condition that ends, "
         "found one that is always true"),
        (loop(lambda s: s, condition=lambda s: s[0] > 0), "while_loop: expected a condition of one "
         "bool, found bool[3]; np.all and np.any make one of several"),
        (loop(lambda s: s, turns=0), "while_loop: expected turns of 1 at least, found 0"),
        (lambda x: vdla.cond(x, lambda: x, lambda: x), "cond: expected a condition of one bool, "
         "found float32[3]; np.all and np.any make one of several"),
        (lambda x: vdla.cond(x[0] > 0, lambda: x, lambda: x[0]), "cond: expected result of both "
         "functions to be float32[3], found float32[]"),
        (lambda x: vdla.cond(x[0] > 0, lambda: x, lambda: (x, x)), "cond: expected result of both "
         "functions to be ·, found (·, ·)"),
        (lambda x: vdla.scan(lambda s, v: s, x, x), "scan: expected a body that gives a state and "
         "a slice, found Array"),
        (lambda x: vdla.scan(lambda s, v: (v, s), x, x), "scan: expected what turn after turn gets "
         "as state to stay float32[3], found float32[]"),
        (lambda x: vdla.scan(lambda s, v: (s, v), x, (x, x[:2])), "scan: expected xs of one "
         "length, and one element at least, found 2 and 3"),
        (lambda x: vdla.scan(lambda s, v: (s, v), x, None), "scan: expected xs of one length, and "
         "one element at least, found neither xs nor length"),
        (lambda x: x if x[0] > 0 else -x, "a Python value: expected a value known while the "
         "function is traced, found bool[]; vdla.cond, vdla.while_loop and np.where decide by "
         "arrays"),
    ],
)  # fmt: skip
def test_what_is_refused(function, message, refusal):
    assert refusal(function, X) == message
