"""Pieces of equally many blocks: together they are the weight."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vdla.compiler.targets.processor.operators.pieces import BLOCK, pieces_of


def weight_of(o, i, share, seed):
    """Small numbers, in blocks that are zero with a probability."""
    rng = np.random.default_rng(seed)
    keep = rng.random((-(-o // BLOCK), -(-i // BLOCK))) >= share
    weight = rng.integers(1, 100, (o, i)).astype(np.int8)
    return weight * keep.repeat(BLOCK, 0).repeat(BLOCK, 1)[:o, :i]


def together(pieces, shape):
    """The weight that pieces make up."""
    o, i = (-(-n // BLOCK) for n in shape)
    blocks = np.zeros((o, i, BLOCK, BLOCK), int)
    for row, places in enumerate(pieces.places):
        for place in places:
            for column, block in zip(pieces.columns[place], pieces.weights[place], strict=True):
                blocks[row, column] += block.T
    return blocks.transpose(0, 2, 1, 3).reshape(o * BLOCK, i * BLOCK)[: shape[0], : shape[1]]


@settings(max_examples=40)
@given(
    o=st.integers(1, 100), i=st.integers(1, 400), share=st.sampled_from([0, 0.5, 0.9, 1]),
    at_once=st.sampled_from([1, 2, 8]), seed=st.integers(0, 99),
)  # fmt: skip
def test_they_are_the_weight(o, i, share, at_once, seed):
    weight = weight_of(o, i, share, seed)
    pieces = pieces_of(weight, at_once)
    assert len(pieces.weights) % at_once == 0
    assert pieces.columns.min() >= 0
    np.testing.assert_array_equal(together(pieces, weight.shape), weight)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_few_are_filled_up(share):
    weight = weight_of(1024, 1024, share, 0)
    size = pieces_of(weight, 8).weights.size
    assert np.count_nonzero(weight) < size < 1.2 * np.count_nonzero(weight)


def test_one_row_has_all():
    weight = weight_of(512, 512, 1, 0)
    weight[32:48] = 1
    pieces = pieces_of(weight, 1)
    count, length = pieces.columns.shape
    assert (count - 1) * length < 32 + length  # and a zero one for the other rows
    assert not pieces.weights[-1].any()
    np.testing.assert_array_equal(together(pieces, weight.shape), weight)
