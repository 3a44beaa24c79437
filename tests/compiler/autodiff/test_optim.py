"""``vdla.optim``: steps as the papers write them, in float64, at once and compiled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import vdla
from vdla.compiler.tracing.errors import TraceError

STEPS = 12
RNG = np.random.default_rng(0)


@dataclass
class Layer:
    """Parameters nested in a class."""

    w: np.ndarray
    b: np.ndarray


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def layer():
    return {"layer": Layer(numbers(3, 2), numbers(2)), "rest": [numbers(1)]}


PARAMS, GRADIENTS = layer(), [layer() for _ in range(STEPS)]


def leaves(p):
    return [p["layer"].w, p["layer"].b, p["rest"][0]]


def momentum(x, gradients, rate=0.1, share=0.9, nesterov=False):
    speed = 0
    for d in gradients:
        speed = share * speed + d
        x = x - rate * (d + share * speed if nesterov else speed)
    return x


def adagrad(x, gradients, rate=0.1):
    total = 0
    for d in gradients:
        total = total + d**2
        x = x - rate * d / (np.sqrt(total) + 1e-10)
    return x


def adam(x, gradients, rate=0.1, decay=0.0):
    mean = square = 0
    for t, d in enumerate(gradients, 1):
        mean, square = 0.9 * mean + 0.1 * d, 0.999 * square + 0.001 * d**2
        ahead = (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        x = x - rate * (ahead + decay * x)
    return x


RULES = {
    "sgd": (vdla.optim.Sgd(0.1), lambda x, g: momentum(x, g, share=0)),
    "momentum": (vdla.optim.Sgd(0.1, momentum=0.9), momentum),
    "nesterov": (
        vdla.optim.Sgd(0.1, momentum=0.9, nesterov=True),
        lambda x, g: momentum(x, g, nesterov=True),
    ),
    "adagrad": (vdla.optim.Adagrad(0.1), adagrad),
    "adam": (vdla.optim.Adam(0.1), adam),
    "adamw": (vdla.optim.Adam(0.1, decay=0.05), lambda x, g: adam(x, g, decay=0.05)),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("compiled", [False, True])
def test_steps_are_the_papers(name, compiled):
    optimizer, rule = RULES[name]
    step = vdla.fn(lambda p, d, s: optimizer.step(p, d, s)) if compiled else optimizer.step
    p, state = PARAMS, optimizer.start(PARAMS)
    for d in GRADIENTS:
        p, state = step(p, d, state)
    for found, x, *g in zip(leaves(p), leaves(PARAMS), *map(leaves, GRADIENTS), strict=True):
        want = rule(x.astype(np.float64), [each.astype(np.float64) for each in g])
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


def test_a_mean_of_many_steps_keeps_its_weights():
    """After 5,000 steps of one gradient a mean of float32 is that gradient."""
    optimizer, x = vdla.optim.Adam(0.0), np.ones(1, np.float32)
    state = optimizer.start(x)
    for _ in range(5000):
        _, state = optimizer.step(x, x * 3, state)
    sums = state["weights"]
    np.testing.assert_allclose(state["mean"] / sums["mean"], 3, rtol=1e-5)
    np.testing.assert_allclose(state["square"] / sums["square"], 9, rtol=1e-5)


def test_rates_of_a_step_and_decays_of_a_parameter():
    x = {"a": np.ones(2, np.float32), "b": np.ones(3, np.float32)}
    zero = {name: each * 0 for name, each in x.items()}
    optimizer = vdla.optim.Sgd(9.0, decay={"a": 0.5, "b": 0})

    @vdla.fn
    def step(x, d, state, rate):
        return optimizer.step(x, d, state, rate)[0]

    found = step(x, zero, optimizer.start(x), np.float32(0.1))
    np.testing.assert_allclose(found["a"], 0.95)
    np.testing.assert_allclose(found["b"], 1)


def test_one_compiled_step_learns():
    x = numbers(64, 3)
    y = x @ np.array([[1], [-2], [0.5]], np.float32)
    optimizer = vdla.optim.Adam(0.1)

    @vdla.fn
    def step(p, state):
        error, d = vdla.value_and_grad(lambda p: np.mean((x @ p - y) ** 2))(p)
        return error, *optimizer.step(p, d, state)

    p = np.zeros((3, 1), np.float32)
    state, errors = optimizer.start(p), []
    for _ in range(100):
        error, p, state = step(p, state)
        errors.append(error)
    assert errors[-1] < 1e-2 * errors[0]


def test_clipped_gradients():
    d = {"a": np.full(4, 3, np.float32), "b": np.full(4, 4, np.float32)}  # of norm 10
    for run in (vdla.optim.clipped, vdla.fn(vdla.optim.clipped)):
        np.testing.assert_allclose(run(d, 1.0)["b"], 0.4, rtol=1e-6)
        np.testing.assert_allclose(run(d, 20.0)["b"], 4, rtol=1e-6)
        assert not run({"a": d["a"] * 0}, 1.0)["a"].any()


def test_refusals():
    adam, x = vdla.optim.Adam(), {"a": np.ones(2, np.float32)}
    with pytest.raises(TraceError, match=r"expected parameters\['a'\] to be an array of floats"):
        adam.step({"a": np.arange(2)}, x, {})
    with pytest.raises(
        TraceError, match=r"expected start\['a'\] to be an array of floats, found 1.0"
    ):
        adam.start({"a": 1.0})
    with pytest.raises(TraceError, match="gradients nested as the parameters are, dict"):
        adam.step(x, {"b": x["a"]}, adam.start(x))
    with pytest.raises(TraceError, match="expected state mean nested as the parameters are"):
        adam.step(x, x, vdla.optim.Sgd().start(x))
