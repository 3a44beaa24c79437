"""Predictions of what wasn't evaluated: a Gaussian process over the grid of a space.

What is predicted is the logarithm of how far an objective stands above what a design is worth at
best. Designs that are close in the grid are alike in that, so few evaluations tell much (Rasmussen
and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1 and equation 5.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LENGTHS = (0.15, 0.3, 0.6, 1.2, 2.5)  # of the kernel, in shares of a parameter's range
MOST_FITTED = 64  # rows that lengths are chosen by, spread over all
NOISE = 1e-4  # variance of what the grid doesn't explain, in shares of the whole


@dataclass(frozen=True)
class Surrogate:
    """A Gaussian process with a Matérn kernel of order 5/2, fitted to ``x`` [rows, parameters] in
    [0, 1], as ``weights`` over the rows; ``factor`` is Cholesky's of their covariances."""

    x: Floats
    lengths: Floats
    mean: float
    scale: float
    factor: Floats
    weights: Floats

    @classmethod
    def fit(cls, x: Floats, y: Floats) -> Self:
        """The process that explains ``y`` best: each parameter's length is chosen by the marginal
        likelihood of some rows, one after another, twice."""
        mean, scale = float(y.mean()), float(y.std()) or 1.0
        target = (y - mean) / scale
        some = np.unique(np.linspace(0, len(y) - 1, MOST_FITTED).astype(np.int64))
        lengths = np.full(x.shape[1], 0.6)
        for _ in range(2):
            for axis in range(x.shape[1]):
                options = [_replaced(lengths, axis, length) for length in LENGTHS]
                lengths = max(options, key=lambda each: _likelihood(x[some], target[some], each))
        factor, weights = _solved(x, target, lengths)
        return cls(x, lengths, mean, scale, factor, weights)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation for rows of parameters."""
        covariance = _kernel(x, self.x, self.lengths)
        inner = np.linalg.solve(self.factor, covariance.T)
        variance = np.maximum(1.0 - np.sum(inner**2, axis=0), 0.0)
        return self.mean + self.scale * (covariance @ self.weights), self.scale * np.sqrt(variance)


def _replaced(lengths: Floats, axis: int, length: float) -> Floats:
    result = lengths.copy()
    result[axis] = length
    return result


def _kernel(a: Floats, b: Floats, lengths: Floats) -> Floats:
    """Matérn's covariances of order 5/2 between rows."""
    difference = (a[:, None] - b[None]) / lengths
    r = np.sqrt(5.0 * np.sum(difference**2, axis=2))
    covariance: Floats = (1.0 + r + r**2 / 3.0) * np.exp(-r)
    return covariance


def _solved(x: Floats, y: Floats, lengths: Floats) -> tuple[Floats, Floats]:
    """Cholesky's factor of the covariances, and the weights of the rows."""
    covariance = _kernel(x, x, lengths) + NOISE * np.eye(len(x))
    factor = np.asarray(np.linalg.cholesky(covariance), np.float64)
    return factor, np.linalg.solve(factor.T, np.linalg.solve(factor, y))


def _likelihood(x: Floats, y: Floats, lengths: Floats) -> float:
    """The logarithm of the marginal likelihood, less a constant."""
    factor, weights = _solved(x, y, lengths)
    return float(-0.5 * y @ weights - np.log(np.diag(factor)).sum())
