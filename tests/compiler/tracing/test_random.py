"""Random functions of choices, loops and calls inside one another run compiled as in numpy."""

from __future__ import annotations

import numpy as np
import pytest

import vdla

X = np.array([[0.5, -1.5, 2.0], [1.0, 0.25, -0.5]], np.float32)


class Draft:
    """A random function of several arrays of three elements; the same one each time it is made."""

    def __init__(self, seed):
        self.rng, self.calls = np.random.default_rng(seed), 0

    def body(self, depth):
        """A function from some arrays to as many."""
        steps = [self.step(depth) for _ in range(self.rng.integers(1, 4))]

        def run(values):
            for step in steps:
                values = step(values)
            return values

        return run

    def step(self, depth):
        kinds = ["mix", "swap", "tanh", "constant"] + ["cond", "scan", "while", "call"] * (
            depth > 0
        )
        return getattr(self, str(self.rng.choice(kinds)))(depth - 1)

    def pair(self):
        return [int(n) for n in self.rng.integers(0, 3, 2)]

    def put(self, at, value):
        """A function that has another value of all the arrays in the place of one."""
        return lambda values: [value(values) if n == at else v for n, v in enumerate(values)]

    def mix(self, depth):
        a, b = self.pair()
        return self.put(a, lambda v: v[a] * np.float32(0.5) + v[b])

    def swap(self, depth):
        order = self.rng.permutation(3)
        return lambda values: [values[n] for n in order]

    def tanh(self, depth):
        a, b = self.pair()
        return self.put(a, lambda v: np.tanh(v[b]))

    def constant(self, depth):
        a, _ = self.pair()
        return self.put(a, lambda v: np.ones(3, np.float32))

    def cond(self, depth):
        a, b = self.pair()
        then, otherwise = self.body(depth), self.body(depth)
        return lambda values: vdla.cond(
            values[a].sum() > values[b].max(), lambda: then(values), lambda: otherwise(values)
        )

    def scan(self, depth):
        body, (a, b) = self.body(depth), self.pair()
        reverse, same = bool(self.rng.integers(2)), bool(self.rng.integers(2))

        def run(values):
            def turn(state, row):
                new = body([*state[:2], row if same else state[2] + values[b]])
                return new, (new[a] if same else row * state[0])

            state, rows = vdla.scan(turn, values, np.stack([values[a], values[b]]), reverse=reverse)
            return [state[0], rows[0], rows[1] + state[1]]

        return run

    def while_loop(self, depth):
        body, turns = self.body(depth), int(self.rng.integers(0, 4))

        def run(values):
            return vdla.while_loop(
                lambda s: (s[0] < turns) & (abs(s[1][0].sum()) < 50),
                lambda s: (s[0] + 1, body(s[1])),
                (np.int64(0), values),
            )[1]

        return run

    def call(self, depth):
        body, turns = self.body(depth), int(self.rng.integers(0, 3))
        self.calls += 1

        @vdla.fn(returns=lambda n, values: values)
        def again(n, values):
            return vdla.cond(
                n <= 0,
                lambda: values,
                lambda: [a + b for a, b in zip(again(n - 1, body(values)), values, strict=True)],
            )

        return lambda values: again(np.int64(turns), values)


setattr(Draft, "while", Draft.while_loop)


def check(seed):
    body = Draft(seed).body(3)

    @vdla.fn
    def function(x):
        return body([x[0], x[1], x[0] * x[1]])

    with np.errstate(all="ignore"):
        expected = function.__wrapped__(X)
    for actual, wanted in zip(function(X), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_as_numpy(seed):
    check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_as_numpy(seed):
    check(seed)
