"""Functions in fixed point: near the real ones, and within int16."""

from __future__ import annotations

import numpy as np

from vdla.compiler.graph.ops.fixed_point import HIGH, LOW, ONE, STEP, Arrays

ALL = np.arange(LOW, HIGH + 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_functions_are_near_the_real_ones():
    assert np.abs(Arrays().sigmoid(ALL) / ONE - sigmoid(ALL / STEP)).max() < 1 / 4800
    assert np.abs(Arrays().tanh(ALL) / ONE - np.tanh(ALL / STEP)).max() < 1 / 2400


def test_functions_never_fall_and_stay_within_int16():
    for values in (Arrays().sigmoid(ALL), Arrays().tanh(ALL)):
        assert (np.diff(values) >= 0).all()
        assert values.min() >= LOW
        assert values.max() <= HIGH
    assert Arrays().tanh(np.zeros(1, np.int64)) == 0
