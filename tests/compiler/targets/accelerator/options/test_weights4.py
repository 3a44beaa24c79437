"""Weights of 4 bits: which ones lie in DRAM as nibbles, and how."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.compiler import te
from vdla.compiler.targets.accelerator.options.weights4 import fits, in_dram, weights
from vdla.compiler.tir.interp import evaluate
from vdla.isa.config import load_config

NIBBLES, PLAIN = load_config("tiny", ["weights4=1"]), load_config("tiny")


@pytest.mark.parametrize(
    ("values", "fit"),
    [([-8, 7], True), ([-9, 0], False), ([0, 8], False), ([0, 0], True), ([127, -128], False)],
)
def test_which_fit(values, fit):
    small, given = np.zeros((2, 2), np.int8), np.array(values, np.int8)
    assert fits([given], NIBBLES) == fit
    assert fits([small, given], NIBBLES) == fit  # all, or none
    assert fits([given, small], NIBBLES) == fit
    assert not fits([given], PLAIN)


def test_the_first_of_two_lies_in_the_low_nibble():
    tiles = np.array([[[1, -1, 7, -8]]], np.int8)
    assert in_dram(tiles, weights4=True).tobytes() == bytes([0xF1, 0x87])
    assert in_dram(tiles, weights4=False) is tiles


def test_the_expression_gives_them_back():
    """Every pair of nibbles, by the interpreter of loops."""
    tiles = np.stack(np.meshgrid(*[np.arange(-8, 8)] * 2), axis=-1).reshape(16, 32).astype(np.int8)
    data, widened = weights(tiles.shape, "w", weights4=True)
    assert data.shape == (16, 16)
    func = te.create_prim_func([data], [widened])
    (found,) = evaluate(func, in_dram(tiles, weights4=True))
    np.testing.assert_array_equal(found, tiles)


def test_int8_is_read_as_it_is():
    data, tiles = weights((2, 4), "w", weights4=False)
    assert tiles is data
    assert (data.dtype, data.shape) == ("int8", (2, 4))
