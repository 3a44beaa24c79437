"""Adjoints of convolutions and pools, against differences of their results."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.gradients import check_node
from vdla.compiler.graph import ops

PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))
PADS = st.tuples(*[st.integers(0, 2)] * 4)
POOLED = {"kernel": (2, 3), "strides": (2, 1), "pads": (1, 0, 0, 1), "dilations": (1, 1)}


def numbers(*shape):
    rng = np.random.default_rng(0)
    return rng.permutation(np.arange(np.prod(shape))).reshape(shape).astype(np.float32) / 16 - 1


@settings(max_examples=25)
@given(
    kernel=PAIR, strides=PAIR, dilations=PAIR, pads=PADS, groups=st.sampled_from([1, 2]),
    channels=st.tuples(st.integers(1, 2), st.integers(1, 2)), more=PAIR, bias=st.booleans(),
)  # fmt: skip
def test_convolutions(kernel, strides, dilations, pads, groups, channels, more, bias):
    reach = [d * (k - 1) + m for k, d, m in zip(kernel, dilations, more, strict=True)]
    data = numbers(2, groups * channels[0], *reach)
    weight = numbers(groups * channels[1], channels[0], *kernel)
    operands = {"data": data, "weight": weight}
    if bias:
        operands["bias"] = numbers(len(weight))
    fields = {"strides": strides, "dilations": dilations, "pads": pads, "groups": groups}
    check_node(ops.Conv2d, operands, **fields)


@pytest.mark.parametrize(
    "change", [{}, {"strides": (1, 3)}, {"dilations": (2, 1)}, {"pads": (0,) * 4}]
)
def test_pools(change):
    check_node(ops.MaxPool, {"data": numbers(1, 2, 5, 6)}, **POOLED | change)
    for include in (True, False):
        data = {"data": numbers(1, 2, 5, 6)}
        check_node(ops.AvgPool, data, **POOLED | change, include_pad=include)
