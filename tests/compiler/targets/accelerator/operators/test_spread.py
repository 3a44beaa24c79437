"""Convolutions of signals whose taps lie far apart: each tap has loads of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.one_node import check
from vdla.compiler.graph import ops
from vdla.compiler.graph.types import Quant, Requant, TensorType
from vdla.compiler.targets.accelerator.operators.conv2d.sizes import APART
from vdla.isa.config import load_config


def signal(rng, inputs, outputs, length, taps, dilation, groups=1):
    """A node, its data and its constants, of a signal whose result has ``length`` places."""
    data = rng.integers(-128, 128, (1, inputs, 1, length + (taps - 1) * dilation)).astype(np.int8)
    weight = rng.integers(-20, 21, (outputs, inputs // groups, 1, taps)).astype(np.int8)
    bias = rng.integers(-500, 500, outputs).astype(np.int32)
    node = ops.QConv2d(
        name="n", output="y", data="x", weight="w", bias="b", zeros=(3,),
        requant=Requant((0.002,) * outputs, -5), strides=(1, 1), pads=(0, 0, 0, 0),
        dilations=(1, dilation), groups=groups,
    )  # fmt: skip
    return node, {"x": data}, {"w": weight, "b": bias}


def result_type(outputs, length):
    return TensorType((1, outputs, 1, length), "int8", quant=Quant(0.1, -5))


@pytest.mark.parametrize("config", ["tiny", "narrow", "paper"])
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_any_signal_is_exact(config, data):
    draw, config = data.draw, load_config(config)
    inputs, outputs = (draw(st.integers(1, 2)) * config.channel_block for _ in range(2))
    length, taps = draw(st.integers(1, 90)), draw(st.integers(2, 4))
    dilation = draw(st.integers(APART, 3 * APART))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    case = signal(rng, inputs, outputs, length, taps, dilation)
    check(*case, result_type(outputs, length), config)


def test_taps_farther_apart_than_a_buffer_holds():
    config = load_config("tiny")
    dilation = 4 * config.depth("inp")
    case = signal(np.random.default_rng(1), 8, 8, 300, 3, dilation)
    check(*case, result_type(8, 300), config)


def test_groups_are_exact():
    case = signal(np.random.default_rng(2), 16, 16, 40, 3, APART, groups=2)
    check(*case, result_type(16, 40), load_config("tiny"))


def test_padded_windows_hold_what_lies_between():
    node, inputs, constants = signal(np.random.default_rng(3), 8, 8, 40, 3, APART)
    padded = replace(node, pads=(0, 2, 0, 2))
    check(padded, inputs, constants, result_type(8, 44), load_config("paper"))
