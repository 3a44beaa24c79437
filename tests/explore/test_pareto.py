"""Fronts and hypervolumes against their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from vdla.explore.pareto import crowding, dominates, front, gains, hypervolume, ranks


def random_vectors(seed, count, objectives, most=8):
    return np.random.default_rng(seed).integers(0, most, (count, objectives)).astype(float)


def counted(vectors, most):
    """The unit cells of a cube that some vector of integers dominates."""
    cells = product(range(most), repeat=vectors.shape[1])
    return sum(any(np.all(vector <= cell) for vector in vectors) for cell in cells)


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_a_hypervolume_is_the_cells_that_are_dominated(objectives):
    for seed in range(20):
        vectors = random_vectors(seed, 1 + seed, objectives, 10)
        assert hypervolume(vectors, np.full(objectives, 8.0)) == counted(vectors, 8)


def test_nothing_below_the_reference_has_no_hypervolume():
    assert hypervolume(np.array([[1.0, 5.0]]), np.array([4.0, 4.0])) == 0
    assert hypervolume(np.empty((0, 2)), np.array([4.0, 4.0])) == 0


def test_four_objectives_have_no_hypervolume():
    text = "hypervolume: expected at most 3 objectives, found 4"
    with pytest.raises(ValueError, match=text):
        hypervolume(np.zeros((1, 4)), np.ones(4))


@pytest.mark.parametrize("objectives", [2, 3])
def test_a_front_is_what_nothing_dominates(objectives):
    for seed in range(20):
        vectors = random_vectors(seed, 30, objectives)
        rows = front(vectors)
        best = [v for v in vectors if not any(dominates(other, v) for other in vectors)]
        assert {tuple(v) for v in vectors[rows]} == {tuple(v) for v in best}
        assert len(rows) == len({tuple(v) for v in best})


def test_ranks_peel_fronts_off():
    for seed in range(10):
        vectors = np.unique(random_vectors(seed, 30, 2), axis=0)
        left, rank = np.arange(len(vectors)), ranks(vectors)
        for number in range(rank.max() + 1):
            rows = left[front(vectors[left])]
            assert set(rows) == set(np.flatnonzero(rank == number))
            left = np.setdiff1d(left, rows)
        assert not len(left)


def test_crowding_is_the_distance_of_neighbours():
    vectors = np.array([[0.0, 10.0], [1.0, 4.0], [4.0, 2.0], [10.0, 0.0]])
    assert crowding(vectors).tolist() == [np.inf, 0.4 + 0.8, 0.9 + 0.4, np.inf]


def test_a_gain_is_what_a_candidate_adds():
    chosen, reference = random_vectors(1, 5, 2), np.full(2, 8.0)
    candidates = random_vectors(2, 10, 2)
    for candidate, gain in zip(candidates, gains(candidates, chosen, reference), strict=True):
        both = np.vstack((chosen, candidate))
        assert gain == counted(both, 8) - counted(chosen, 8)
