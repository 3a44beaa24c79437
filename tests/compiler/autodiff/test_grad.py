"""``vdla.grad`` and ``vdla.value_and_grad`` of functions, against differences of their values."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from vdla.compiler.tracing.errors import TraceError

RNG = np.random.default_rng(0)
STEP = 1e-5


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


W, X, H = numbers(3, 3) / 2, numbers(4, 3), numbers(3)


def by_differences(function, args, place):
    """The gradient of a function of numpy's arrays, in float64."""
    args = [each.astype(np.float64) for each in args]
    result = np.zeros(args[place].shape)
    for at in np.ndindex(*result.shape):
        ends = []
        for sign in (1, -1):
            moved = [each.copy() for each in args]
            moved[place][at] += sign * STEP
            ends.append(function(*moved))
        result[at] = (ends[0] - ends[1]) / (2 * STEP)
    return result


def recurrent(w, h, x):
    """A loop with a state, slices, stacked rows, and what it captures."""

    def turn(state, row):
        state = np.tanh(row + state @ w)
        return state, np.sum(state * state)

    last, rows = vdla.scan(turn, h, x)
    return np.sum(last) + np.sum(rows * rows)


def backwards(w, h, x):
    """A loop from the last slice to the first, with a number beside its state."""

    def turn(state, row):
        count, total = state
        return (count + 1, np.sin(total * w[0]) + row), total

    (_, total), rows = vdla.scan(turn, (np.array(0), h), x, reverse=True)
    return np.sum(total * rows[0]) + np.sum(rows[1])


def chosen(w, h, x):
    """One of two, each of other arguments."""
    return vdla.cond(np.sum(x) > 0, lambda: np.sum(np.sin(w) * x[:3]), lambda: np.sum(h * (h @ w)))


def nested(w, h, x):
    """A choice in a loop in a loop."""

    def outer(state, row):
        def inner(total, factor):
            moved = vdla.cond(np.sum(total) > 0, lambda: np.sin(total @ w), lambda: total - factor)
            return moved, np.sum(total * factor)

        state, rows = vdla.scan(inner, state, np.stack([row, row * h]))
        return state + np.sum(rows) * 0.1, np.sum(state)

    state, rows = vdla.scan(outer, h, x)
    return np.sum(state) + np.sum(rows)


def stepped(w, h, x):
    """Integers between floats, which are steps."""
    whole = (x * 8).astype("int32")
    return np.sum(whole.astype(x.dtype) * x) + np.sum(w) + np.sum(h)


def network(w, h, x):
    """Layers, shapes and a softmax."""
    hidden = np.maximum(x @ w + h, 0.1 * (x @ w))
    shares = vdla.softmax(np.concatenate([hidden, hidden[:, ::-1] * 2], axis=1))
    return -np.mean(np.log(shares[:, 1]) * x[:, 0])


@pytest.mark.parametrize("function", [recurrent, backwards, chosen, nested, stepped, network])
@pytest.mark.parametrize("sign", [1, -1])
def test_gradients_in_all_arguments(function, sign):
    args = W, H, sign * X
    value, gradients = vdla.value_and_grad(function, argnums=(0, 1, 2))(*args)
    np.testing.assert_allclose(value, function(*args), rtol=1e-5)
    for place, gradient in enumerate(gradients):
        wanted = by_differences(function, args, place)
        np.testing.assert_allclose(gradient, wanted, atol=2e-5 * max(np.abs(wanted).max(), 1))


def test_gradients_of_gradients():
    def slope(z):
        return np.sum(vdla.grad(lambda u: np.sum(np.sin(u) * u))(z))

    wanted = 2 * np.cos(H) - H * np.sin(H)
    np.testing.assert_allclose(vdla.grad(slope)(H), wanted, rtol=1e-5)


def test_a_step_of_training_in_one_graph():
    """Arguments nest; what a function captures is a constant; the rest of a result is handed on."""
    x, y = numbers(16, 3), numbers(16, 2)

    def loss(parameters):
        guess = np.tanh(x @ parameters["w"]) + parameters["b"][0]
        return np.mean((guess - y) ** 2), guess

    @vdla.fn
    def step(parameters):
        (value, guess), d = vdla.value_and_grad(loss)(parameters)
        moved = {"w": parameters["w"] - d["w"], "b": (parameters["b"][0] - d["b"][0],)}
        return value, guess, moved

    parameters, losses = {"w": numbers(3, 2), "b": (numbers(2),)}, []
    for _ in range(20):
        value, guess, parameters = step(parameters)
        losses.append(value)
    assert guess.shape == (16, 2)
    assert losses[-1] < 0.6 * losses[0]


def test_training_in_a_loop():
    """A gradient inside a turn, of what the turn before has made."""
    x, y = numbers(8, 3), numbers(8, 2)

    @vdla.fn
    def train(w):
        def turn(w, _):
            value, d = vdla.value_and_grad(lambda w: np.mean((x @ w - y) ** 2))(w)
            return w - 0.2 * d, value

        return vdla.scan(turn, w, None, length=200)

    _, losses = train(numbers(3, 2))
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(losses[-1], np.mean((x @ best - y) ** 2), rtol=1e-3)


def test_arguments_that_the_loss_does_not_follow_from():
    first, second = vdla.grad(lambda a, b: np.sum(a), argnums=(0, 1))(H, X)
    np.testing.assert_array_equal(first, np.ones(3))
    np.testing.assert_array_equal(second, np.zeros((4, 3)))


REFUSALS = {
    "a loss of several": (lambda x: x * 2, "expected a loss of one float, found float32[3]"),
    "a loss of integers": (
        lambda x: np.sum(x).astype("int32"), "expected a loss of one float, found int32[]",
    ),
    "a loop without an end that is known": (
        lambda x: np.sum(vdla.while_loop(lambda s: np.sum(s) < 9, lambda s: s * 2, np.abs(x) + 1)),
        "expected operators that have a gradient, found While, which is",
    ),
    "a call of a named function": (
        lambda x: np.sum(halved(x)), "expected operators that have a gradient, found Call, which",
    ),
}  # fmt: skip


@vdla.fn(returns=lambda x: x)
def halved(x):
    return vdla.cond(np.sum(x) > 1, lambda: halved(x / 2), lambda: x)


@pytest.mark.parametrize("why", REFUSALS)
def test_refusals(why):
    function, line = REFUSALS[why]
    with pytest.raises(TraceError) as caught:
        vdla.grad(function)(np.abs(H))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arguments_of_integers_and_places_that_are_not_there():
    with pytest.raises(TraceError, match="expected arguments of floats, found int64"):
        vdla.grad(lambda n: np.sum(n * 1.0))(np.arange(3))
    with pytest.raises(TraceError, match="expected argnums below 1, found 1"):
        vdla.grad(lambda x: np.sum(x), argnums=1)(H)


def test_what_is_computed_once_more_has_the_same_gradient():
    """In nested arguments, with integers among them and of several results; with less memory."""
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((64, 32), np.float32), rng.standard_normal((32, 32), np.float32) / 6
    chosen = np.arange(64) % 2 == 0

    def block(p, x, some):
        y = np.tanh(np.tanh(x @ p["w"]) * 1.1)
        return x + y, np.sum(np.where(some.reshape(-1, 1), y, 0.0))

    def slopes(layer):
        def loss(p):
            y, total = x, np.float32(0)
            for _ in range(3):
                y, part = layer(p, y, chosen)
                total = total + part
            return np.mean(y * y) + total

        return vdla.fn(lambda w: vdla.value_and_grad(loss)({"w": w}))

    plain, again = slopes(block), slopes(vdla.remat(block))
    for one, other in zip(plain(w), again(w), strict=True):
        one, other = (each["w"] if isinstance(each, dict) else each for each in (one, other))
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    sizes = [f.compile(w).metadata["memory"]["activations"] for f in (plain, again)]
    assert sizes[1] < 0.9 * sizes[0]
    np.testing.assert_array_equal(
        vdla.remat(block)({"w": w}, x, chosen)[0], block({"w": w}, x, chosen)[0]
    )


def test_second_derivatives_of_what_is_computed_once_more():
    def cube(x):
        return vdla.remat(lambda x: x * x * x)(x)

    assert vdla.grad(lambda x: vdla.grad(cube)(x) ** 2)(np.float32(2)) == pytest.approx(288)
