"""Softmax and normalizations that the accelerator refuses, and digits of factors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vdla.compiler.graph.ir import Graph
from vdla.compiler.graph.ops.image_softmax import QSoftmax
from vdla.compiler.graph.ops.normalize import MOST_OFFSET, QNormalize
from vdla.compiler.graph.types import Requant, TensorType
from vdla.compiler.targets.accelerator.capability import Capability
from vdla.compiler.targets.accelerator.operators.normalize import DIGIT, digits
from vdla.isa.config import load_config

FULL = ["table_bytes=2048", "reciprocal_units=1"]


def softmax(pixels):
    """A graph of one softmax over so many pixels."""
    node = QSoftmax(
        name="n", output="y", data="x", step=0.1, zeros=(0,), requant=Requant((1 / 256,), -128)
    )
    kind = TensorType((1, 16, 1, pixels), "int8")
    return node, Graph(("x",), ("y",), (node,), {"x": kind, "y": kind}, {})


def normalization(channels, epsilon=0.1):
    """A graph of one normalization of so many channels."""
    node = QNormalize(
        name="n",
        output="y",
        data="x",
        factor="f",
        offset="o",
        centered=True,
        epsilon=epsilon,
        shift=0,
        zeros=(0,),
        requant=Requant((1.0,), 0),
    )
    terms = {name: np.zeros(channels, np.int32) for name in "fo"}
    tensors = {name: TensorType((channels,), "int32") for name in "fo"}
    tensors |= {"x": TensorType((1, channels, 1, 9), "int8")}
    tensors |= {"y": TensorType((1, 9, 1, channels), "int8")}
    return node, Graph(("x",), ("y",), (node,), tensors, terms)


@pytest.mark.parametrize(
    ("case", "config", "options", "reason"),
    [
        (softmax(9), "paper", FULL[1:], "config paper has no tables for exponentials"),
        (softmax(9), "paper", FULL[:1], "config paper has no reciprocals (reciprocal_units = 0)"),
        (softmax(4096), "paper", FULL, "a row of 4096 pixels exceeds the 2048 vectors of acc"),
        (normalization(64), "paper", [], "config paper has no reciprocals"),
        (normalization(100), "paper", FULL, "100 channels don't end with a block of 16"),
        (normalization(4096), "paper", FULL, "256 blocks of channels exceed the 128 tiles of wgt"),
        (normalization(64), "narrow", FULL, "pixels are no tiles of weights where blocks differ"),
        (normalization(64, 1e9), "paper", FULL, "an epsilon of 1e+09 squared steps exceeds a sum"),
        (softmax(9), "paper", FULL, None),
        (normalization(64), "paper", FULL, None),
    ],
)
def test_refusals(case, config, options, reason):
    answer = Capability(load_config(config, options)).refusal(*case)
    assert answer is None if reason is None else answer.startswith(reason)


@given(st.lists(st.integers(-MOST_OFFSET, MOST_OFFSET), min_size=1), st.sampled_from([4, 16, 32]))
def test_digits_are_numbers(values, lanes):
    """One digit counts once, the others DIGIT times each."""
    numbers = np.array(values, np.int32)
    vectors = digits(numbers, lanes).astype(int)
    np.testing.assert_array_equal(vectors[:, 0] + DIGIT * vectors[:, 1:].sum(axis=1), numbers)
