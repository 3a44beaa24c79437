"""Pareto fronts of vectors to be minimized, and the exact hypervolume that they dominate.

Vectors are rows of an array [count, objectives] of floats.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]

MOST_OBJECTIVES = 3  # that the hypervolume is computed for


def dominates(a: Vectors, b: Vectors) -> bool:
    """Whether vector ``a`` is nowhere above ``b``, and somewhere below."""
    return bool(np.all(a <= b) and np.any(a < b))


def front(vectors: Vectors) -> list[int]:
    """The rows that no other row dominates, in their order; of equal rows the first."""
    order = np.lexsort(vectors.T[::-1])  # by the first objective, then by the next
    kept: list[int] = []
    for row in order:
        chosen = vectors[kept]
        if not np.any(np.all(chosen <= vectors[row], axis=1)):
            kept.append(int(row))
    return sorted(kept)


def ranks(vectors: Vectors) -> NDArray[np.int64]:
    """The number of the front that each row is in: 0 for the rows that none dominates, 1 for those
    that none dominates without these, and so on (Deb et al., NSGA-II, 2002)."""
    below = np.all(vectors[:, None] <= vectors[None], axis=2)
    strictly = below & np.any(vectors[:, None] < vectors[None], axis=2)
    result, rank = np.full(len(vectors), -1, np.int64), 0
    while np.any(left := result < 0):
        free = left & ~np.any(strictly[left], axis=0)
        result[free], rank = rank, rank + 1
    return result


def crowding(vectors: Vectors) -> Vectors:
    """Distance between each row's neighbours in every objective, in shares of its span; infinity at
    the ends (Deb et al., NSGA-II, 2002)."""
    result = np.zeros(len(vectors))
    for values in vectors.T:
        order = np.argsort(values, kind="stable")
        span = values[order[-1]] - values[order[0]]
        result[order[[0, -1]]] = np.inf
        if span > 0:
            result[order[1:-1]] += (values[order[2:]] - values[order[:-2]]) / span
    return result


def hypervolume(vectors: Vectors, reference: Vectors) -> float:
    """The volume that some vectors dominate below a reference point, exactly.

    Two objectives are a sweep over areas, three a sweep over slices of such areas.

    Raises:
        ValueError: there are more than three objectives.
    """
    count = vectors.shape[1]
    if count > MOST_OBJECTIVES:
        text = f"expected at most {MOST_OBJECTIVES} objectives, found {count}"
        raise ValueError(f"hypervolume: {text}")
    inside = vectors[np.all(vectors < reference, axis=1)]
    if not len(inside):
        return 0.0
    if count == 1:
        return float(reference[0] - inside.min())
    if count == 2:
        return _area(inside, reference)
    inside = inside[np.argsort(inside[:, 2], kind="stable")]
    ends = np.append(inside[1:, 2], reference[2])
    slices = enumerate(ends - inside[:, 2], start=1)
    return sum(
        float(height) * _area(inside[:rows, :2], reference) for rows, height in slices if height
    )


def _area(vectors: Vectors, reference: Vectors) -> float:
    """The area that vectors of two objectives, all inside, dominate."""
    order = np.lexsort((vectors[:, 1], vectors[:, 0]))
    x, y = vectors[order, 0], np.minimum.accumulate(vectors[order, 1])
    return float(np.sum((np.append(x[1:], reference[0]) - x) * (reference[1] - y)))


def gains(candidates: Vectors, chosen: Vectors, reference: Vectors) -> Vectors:
    """Hypervolume that each candidate alone adds to that of some chosen vectors."""
    base = hypervolume(chosen, reference)
    return np.array(
        [hypervolume(np.vstack((chosen, each)), reference) - base for each in candidates]
    )
