"""Predictions of a Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest

from vdla.explore.surrogate import Surrogate


def smooth(x):
    return 3.0 + np.sin(3 * x[:, 0]) - x[:, 1] ** 2  # of the third parameter nothing depends


@pytest.fixture(scope="module")
def fitted():
    x = np.random.default_rng(1).random((40, 3))
    return x, Surrogate.fit(x, smooth(x))


def test_what_was_fitted_is_known(fitted):
    x, process = fitted
    mean, deviation = process.predict(x)
    np.testing.assert_allclose(mean, smooth(x), atol=0.02)
    assert deviation.max() < 0.05


def test_what_lies_between_is_predicted(fitted):
    _, process = fitted
    x = np.random.default_rng(2).random((50, 3))
    mean, deviation = process.predict(x)
    assert np.abs(mean - smooth(x)).max() < 0.1
    assert np.mean(np.abs(mean - smooth(x)) <= 3 * deviation + 1e-3) > 0.9


def test_a_parameter_that_says_nothing_gets_a_long_length(fitted):
    _, process = fitted
    assert process.lengths[2] == process.lengths.max()


def test_far_from_all_that_is_known_nothing_is_certain(fitted):
    _, process = fitted
    mean, deviation = process.predict(np.array([[9.0, 9.0, 9.0]]))
    assert mean[0] == pytest.approx(process.mean, abs=0.1)
    assert deviation[0] == pytest.approx(process.scale, rel=0.05)


def test_equal_values_are_predicted_as_they_are():
    x = np.random.default_rng(3).random((5, 2))
    mean, _ = Surrogate.fit(x, np.full(5, 2.0)).predict(np.array([[0.5, 0.5]]))
    assert mean[0] == pytest.approx(2.0)
