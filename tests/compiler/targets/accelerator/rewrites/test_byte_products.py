"""Products of matrices of int8, both of which are computed, on the accelerator."""

from __future__ import annotations

import numpy as np
import pytest

import vdla
from vdla.compiler.placement import ACCELERATOR
from vdla.isa.config import load_config
from vdla.runtime.devices.named import make_device
from vdla.runtime.executor import Executor

RNG = np.random.default_rng(7)
SHAPES = [
    ((64, 32), (32, 48)),  # whole blocks
    ((3, 5, 7), (7, 33)),  # one matrix of weights for a stack
    ((2, 3, 17, 20), (2, 3, 20, 18)),  # a stack of both
    ((2, 1, 5, 6), (3, 6, 7)),  # stacks that broadcast
    ((1, 4), (4, 1)),
]


def on_accelerator(function, *arrays, config="tiny"):
    """The result by the simulator, and the operators that it ran."""
    graph = vdla.fn(function).graph(*arrays)
    module = vdla.fn(function).compile(*arrays, device="sim", config=config)
    inputs = dict(zip(graph.inputs, arrays, strict=True))
    run = Executor(module, make_device(module, "sim")).run(inputs)
    rows = module.metadata["placement"]
    return run.outputs[graph.outputs[0]], [r["op"] for r in rows if r["device"] == ACCELERATOR]


@pytest.mark.parametrize("bits", [8, (16, 8), (8, 16)])
@pytest.mark.parametrize("shapes", SHAPES)
def test_sums_are_those_of_numpy(shapes, bits):
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in shapes)

    def product(a, b):
        return vdla.dynamic_matmul(a, b, bits)

    result, operators = on_accelerator(product, a, b)
    assert operators == ["QWideMatMul"]
    np.testing.assert_array_equal(result, product(a, b))


@pytest.mark.parametrize("config", ["paper-full", "wide"])
def test_on_other_configs(config):
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((5, 40), (40, 50)))
    result, operators = on_accelerator(vdla.dynamic_matmul, a, b, config=config)
    assert operators == ["QWideMatMul"]
    np.testing.assert_array_equal(result, vdla.dynamic_matmul(a, b))


def test_a_factor_that_is_known():
    """And that alone: an array that a function captures is a constant."""
    a, b = (RNG.standard_normal(shape).astype(np.float32) for shape in ((5, 40), (40, 6)))

    def by_known(a):
        return vdla.dynamic_matmul(a, b)

    result, operators = on_accelerator(by_known, a)
    assert operators == ["QWideMatMul"]
    np.testing.assert_array_equal(result, vdla.dynamic_matmul(a, b))


def test_integers_that_are_no_bytes_stay_on_the_host():
    a, b = (RNG.integers(-500, 500, shape).astype(np.int32) for shape in ((3, 4), (4, 5)))
    result, operators = on_accelerator(lambda a, b: a @ b, a, b)
    assert operators == []
    np.testing.assert_array_equal(result, a @ b)


def test_a_product_that_the_buffers_do_not_hold_stays_on_the_host():
    long = 16 * load_config("tiny").uop_depth * 4
    a, b = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((3, long), (long, 2)))

    def product(a, b):
        return a.astype(np.int32) @ b.astype(np.int32)

    result, operators = on_accelerator(product, a, b)
    assert operators == []
    np.testing.assert_array_equal(result, product(a, b))


def test_a_step_of_training():
    """Forward in int8, gradients in 16 bits: as the processor computes them, bit for bit."""
    x, w = (RNG.standard_normal(shape).astype(np.float32) for shape in ((6, 20), (20, 3)))

    def step(w, x):
        return vdla.grad(lambda w: np.mean(np.tanh(vdla.dynamic_matmul(x, w)) ** 2))(w)

    result, operators = on_accelerator(step, w, x)
    assert operators == ["QWideMatMul"] * 2
    np.testing.assert_array_equal(result, vdla.fn(step)(w, x))
