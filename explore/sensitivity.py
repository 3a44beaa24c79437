"""Effects of each parameter of a space on each objective, by the designs that were evaluated."""

from __future__ import annotations

from math import isfinite

import numpy as np

from vdla.explore.search import Exploration

RIDGE = 1e-3  # weight of small effects where designs say nothing of a parameter


def sensitivity(result: Exploration) -> dict[str, dict[str, float]]:
    """By parameter and objective, the factor from the parameter's least value to its greatest.

    It is a least-squares fit of the objectives' logarithms that is linear in the positions of the
    values, with a small penalty. Designs of a search aren't drawn alike, so it is of those that
    were evaluated. A factor of 1 where a parameter has one value.
    """
    vectors = {p: e.vector(result.objectives) for p, e in result.evaluations.items()}
    legal = [point for point, vector in vectors.items() if all(map(isfinite, vector))]
    names = list(result.space.parameters)
    if not legal:
        return {name: dict.fromkeys(result.objectives, 1.0) for name in names}
    most = np.maximum(np.array(result.space.shape) - 1, 1)
    x = np.array(legal, np.float64) / most
    y = np.log1p(np.array([vectors[point] for point in legal]))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    effects = np.linalg.solve(x.T @ x + RIDGE * np.eye(len(names)), x.T @ y)
    return {
        name: dict(zip(result.objectives, map(float, np.exp(row)), strict=True))
        for name, row in zip(names, effects, strict=True)
    }
