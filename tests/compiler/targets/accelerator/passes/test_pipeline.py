"""Every pass keeps what the program computes: the interpreter runs it before and after."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from vdla.compiler.targets.accelerator.lower import PASSES
from vdla.compiler.targets.accelerator.operators.add import Add
from vdla.compiler.targets.accelerator.operators.conv2d import Conv2d, ConvTile, Residual
from vdla.compiler.targets.accelerator.operators.pairwise import VectorTile
from vdla.compiler.targets.accelerator.operators.pool import Pool2d, PoolTile
from vdla.compiler.tir import evaluate
from vdla.isa.config import load_config
from vdla.isa.numbers import pack_scale

CONV = Conv2d(
    batch=1, groups=1, inputs=2, outputs=2, height=5, width=6, kernel=(3, 2), strides=(2, 1),
    pads=(1, 0, 1, 1), dilations=(1, 1), in_zero=3, zero=-4, low=-100, high=127,
)  # fmt: skip
RESIDUAL = Residual(weight=30000, imm=-20000, zero=5, out_zero=1, low=-128, high=127)
POOL = Pool2d("sum", 1, 2, 5, 4, (2, 3), (2, 1), (1, 1, 0, 1), (1, 1), -7, 2, -128, 127)
CASES = {
    "conv": (CONV, ConvTile(1, 2, 3, 1, 1, 2)),
    "conv, parameters per tile": (CONV, ConvTile(1, 2, 3, 1, 1, 2, resident=False)),
    "conv, three threads": (CONV, ConvTile(2, 1, 6, 2, 1, 3)),
    "conv, weights kept": (CONV, ConvTile(1, 2, 3, 1, 1, 2, stationary="wgt", stages=3)),
    "conv, image kept": (CONV, ConvTile(1, 2, 6, 1, 1, 2, stationary="inp", stages=2)),
    "residual, in turn": (
        dataclasses.replace(CONV, residual=RESIDUAL),
        ConvTile(2, 1, 6, 2, 1, 2, resident=False, stages=2),
    ),
    "residual": (dataclasses.replace(CONV, residual=RESIDUAL), ConvTile(1, 2, 6, 2, 1, 2)),
    "pool": (POOL, PoolTile(1, 2, 4, 2, "c")),
    "max pool": (dataclasses.replace(POOL, kind="max"), PoolTile(2, 1, 3, 2, "y")),
    "add": (Add(11, 9000, -7000, 3, -8, 2, -128, 127), VectorTile(4, 2)),
}


def arguments(buffers):
    """Random operands; scales are packed."""
    rng = np.random.default_rng(7)
    arrays = []
    for buffer in buffers:
        if "scale" in buffer.name:
            words = [pack_scale(float(s)) for s in rng.uniform(0.0001, 0.01, buffer.size)]
            arrays.append(np.array(words, np.int32).reshape(buffer.shape))
        elif buffer.dtype == "int32":
            arrays.append(rng.integers(-500, 500, buffer.shape).astype(np.int32))
        else:
            arrays.append(rng.integers(-128, 128, buffer.shape).astype(np.int8))
    return arrays


@pytest.mark.parametrize("config", ["tiny", "narrow"])
@pytest.mark.parametrize("name", CASES)
def test_passes_keep_the_result(name, config):
    scheduled = CASES[name][0].schedule(CASES[name][1], load_config(config))
    unscheduled = scheduled.built.func
    inputs = arguments(unscheduled.params[:-1])
    (want,) = evaluate(unscheduled, *inputs)
    func = scheduled.lower()
    np.testing.assert_array_equal(evaluate(func, *inputs)[0], want)
    for spec, run in PASSES:
        func = run(func)
        np.testing.assert_array_equal(evaluate(func, *inputs)[0], want, err_msg=spec.name)
