"""Adjoints of moves, against differences of their results."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gradients import check_node
from vdla.compiler.graph import ops
from vdla.compiler.graph.ops.take import OUTSIDE

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.permutation(np.arange(1, np.prod(shape) + 1)).reshape(shape).astype(np.float32) / 8


def test_shapes():
    check_node(ops.Transpose, {"data": numbers(2, 3, 4)}, perm=(2, 0, 1))
    check_node(ops.Concat, {"parts": [numbers(2, 3), numbers(2, 1), numbers(2, 4)]}, axis=1)
    parts = [numbers(1, 2, 3, 2) for _ in range(6)]
    check_node(ops.Interleave, {"parts": parts}, rows=2, columns=3)


@pytest.mark.parametrize(
    "tables",
    [
        ((0, 1), (2, 1, 0)),  # every element once
        ((1,), (0, 0, 2, 0)),  # some several times, some never
        ((OUTSIDE, 0, 1, OUTSIDE), (2, OUTSIDE, 1)),
        ((0, 1), (OUTSIDE, OUTSIDE)),
    ],
)
def test_selections(tables):
    shape = tuple(map(len, tables))
    places = tuple(place for table in tables for place in table)
    check_node(ops.Take, {"data": numbers(2, 3)}, shape=shape, places=places, fill=2.0)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(4,), (2, 2), ()])
def test_slices_at_indices(axis, shape):
    indices = RNG.integers(0, 3, shape)
    check_node(ops.Gather, {"data": numbers(3, 4, 3), "indices": indices}, axis=axis)


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_elements_at_indices(reduction):
    data, indices = numbers(4, 3), np.array([[0, 1, 3], [2, 0, 1]])
    check_node(ops.GatherElements, {"data": data, "indices": indices}, axis=0)
    check_node(ops.GatherND, {"data": data, "indices": np.array([[0, 1], [3, 2], [0, 1]])})
    updates = {"data": data, "indices": indices, "updates": numbers(2, 3)}
    check_node(ops.ScatterElements, updates, axis=0, reduction=reduction)
    rows = {"data": data, "indices": np.array([[3], [0]]), "updates": numbers(2, 3)}
    check_node(ops.ScatterND, rows, reduction=reduction)


@pytest.mark.parametrize("largest", [True, False])
def test_the_largest(largest):
    check_node(ops.TopK, {"data": numbers(3, 5)}, axis=1, count=2, largest=largest)
