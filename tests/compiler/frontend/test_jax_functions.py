"""Functions of JAX through ``vdla.compile``: four networks, trees of arguments, errors."""

from __future__ import annotations

import numpy as np
import pytest

import vdla

jax = pytest.importorskip("jax")
pytest.importorskip("jax2onnx")
pytestmark = pytest.mark.long  # jax2onnx takes some seconds to import

rng = np.random.default_rng(3)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


IN, OUT, KERNEL = floats(8, 16), floats(16, 4), floats(3, 3, 3, 8)


def mlp(x):
    return jax.nn.relu(x @ IN) @ OUT


def cnn(x):
    layout = ("NHWC", "HWIO", "NHWC")
    y = jax.lax.conv_general_dilated(x, KERNEL, (2, 2), "SAME", dimension_numbers=layout)
    return jax.nn.relu(y).mean((1, 2))


def block(x, heads):
    query, key = (jax.numpy.stack(jax.numpy.split(x @ IN[:, i : i + 8], heads, 1)) for i in (0, 8))
    scores = jax.nn.softmax(query @ key.swapaxes(1, 2) / np.sqrt(8 / heads), -1)
    h = x + jax.numpy.concatenate(list(scores @ query), 1)
    mean, variance = h.mean(-1, keepdims=True), h.var(-1, keepdims=True)
    return jax.nn.gelu((h - mean) / jax.numpy.sqrt(variance + 1e-5))


def scan(x, params):
    def step(state, row):
        state = jax.numpy.tanh(state @ params["w"] + row + params["b"][0])
        return state, state

    state, rows = jax.lax.scan(step, jax.numpy.zeros(4), x)
    return {"rows": rows, "last": state}


NETWORKS = {
    "mlp": (mlp, (floats(2, 8),)),
    "cnn": (cnn, (floats(1, 9, 9, 3),)),
    "block": (block, (floats(6, 8), 2)),
    "scan": (scan, (floats(5, 4), {"w": floats(4, 4), "b": [floats(4)]})),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_jax(name):
    function, args = NETWORKS[name]
    net = vdla.compile(function, args, device="cpu")
    assert net.check(*args).relative < 1e-5
    trees = jax.tree_util.tree_structure
    assert trees(net(*args)) == trees(function(*args))


def test_inputs_are_named_after_arguments_and_sizes_may_stay_open():
    net = vdla.compile(scan, NETWORKS["scan"][1], device="cpu")
    assert sorted(net.module.inputs) == ["params.b.0", "params.w", "x"]
    net = vdla.compile(mlp, (floats(2, 8),), sizes={"x": {0: "batch"}}, device="cpu")
    assert net.check(floats(5, 8)).relative < 1e-5


def eigen(x):
    return jax.numpy.linalg.eigh(x @ IN[:, :8])[0]


def branch(x):
    return x if x.sum() > 0 else -x


@pytest.mark.parametrize("function", [eigen, branch])
def test_errors_name_the_line_of_python(function):
    with pytest.raises(vdla.UserError) as caught:
        vdla.compile(function, (floats(8, 8),), device="cpu")
    message = str(caught.value)
    line = function.__code__.co_firstlineno + 1
    assert message.startswith(f"{function.__name__}: expected a function that jax2onnx translates")
    assert f"test_jax_functions.py:{line}" in message


def test_another_argument_than_was_captured_is_refused():
    net = vdla.compile(block, (floats(6, 8), 2), device="cpu")
    with pytest.raises(vdla.UserError) as caught:
        net(floats(6, 8), 4)
    assert str(caught.value) == (
        "block: expected the argument 2 that the function was captured with, found 4"
    )
