"""Fits the clock's model to mapped designs, and the wires to routed ones.

A mapped design's longest path changes with the wires' scale: a path of few levels and long wires
may overtake another one. So a measurement has the longest path at each of ``SCALES``, as ns of
cells and ns of wires at scale 1, and the period at any scale is that of the longest of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from vdla.explore.area.fit import Floats, non_negative
from vdla.explore.clock.families import Family
from vdla.explore.clock.features import features
from vdla.explore.clock.model import Coefficients, Model
from vdla.isa.config import Config

SCALES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
STEPS = 40  # of a bisection
KEPT = 0.01  # ns, of a coefficient: what is below makes no difference
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class LongPath:
    """A longest path at some scale of wires: ns of its cells, ns of its wires at scale 1, and
    levels of logic."""

    cells_ns: float
    wires_ns: float
    levels: int

    def period(self, scale: float) -> float:
        """The ns that the path takes at a scale of wires."""
        return self.cells_ns + scale * self.wires_ns


@dataclass(frozen=True)
class Measured:
    """A mapped design with its longest paths; the fit sees none that is ``held_out``."""

    config: Config
    paths: Sequence[LongPath]
    held_out: bool

    def longest(self, scale: float) -> LongPath:
        """The longest path at a scale of wires."""
        return max(self.paths, key=lambda path: path.period(scale))

    def period(self, scale: float) -> float:
        """The least period in ns at a scale of wires."""
        return self.longest(scale).period(scale)


@dataclass(frozen=True)
class Routed:
    """A design that a tool routed, and the clock in MHz that it reached."""

    config: Config
    mhz: float


def wires_scale(measured: Sequence[Measured], routed: Sequence[Routed]) -> float:
    """The scale of wires at which mapped designs have the periods of the routed ones on average, of
    the logarithm; 1 where none was routed.

    Raises:
        ValueError: a routed design isn't among the measured ones.
    """
    known = {m.config.hash: m for m in measured}
    pairs = []
    for each in routed:
        if each.config.hash not in known:
            raise ValueError(f"expected a mapping of the routed design {each.config.hash}")
        pairs.append((known[each.config.hash], 1e3 / each.mhz))
    if not pairs:
        return 1.0
    low, high = 0.0, SCALES[-1]
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = sum(log(m.period(middle) / period) for m, period in pairs)
        low, high = (low, middle) if above > 0 else (middle, high)
    return round((low + high) / 2, 4)


def fit(measured: Sequence[Measured], routed: Sequence[Routed], family: Family) -> Model:
    """The family's model: wires by the routed designs, coefficients by those mapped designs that
    aren't held out."""
    scale = wires_scale(measured, routed)
    own = [m for m in measured if not m.held_out]
    periods = [m.period(scale) for m in own]
    levels = [float(m.longest(scale).levels) for m in own]
    configs = [m.config for m in own]
    return Model(family, _coefficients(configs, periods), _coefficients(configs, levels), scale)


def _coefficients(configs: Sequence[Config], values: Sequence[float]) -> Coefficients:
    """Coefficients that are nearest to the values in shares of these. None is below zero, since
    nothing that is added makes a path shorter; and each costs a penalty by what it makes of its
    feature's spread, since few designs would let chance decide. Of ``PENALTIES`` the one is taken
    by which designs that are left out one by one are met best."""
    rows: list[Mapping[str, float]] = [features(config) for config in configs]
    names = list(rows[0])
    matrix = np.array([[row[name] for name in names] for row in rows])
    known = np.array(values)
    penalty = min(PENALTIES, key=lambda each: _left_out(matrix, known, each))
    result = _penalized(matrix, known, penalty)
    return {n: round(float(x), 4) for n, x in zip(names, result, strict=True) if x >= KEPT}


def _penalized(matrix: Floats, values: Floats, penalty: float) -> Floats:
    """Least squares of shares, with a penalty for all coefficients but the first, ``ONCE``."""
    spread = np.ptp(matrix, axis=0)
    costs = penalty * np.diag(spread / values.mean())[1:]
    both = np.vstack((matrix / values[:, None], costs))
    return non_negative(both, np.concatenate((np.ones(len(values)), np.zeros(len(costs)))))


def _left_out(matrix: Floats, values: Floats, penalty: float) -> float:
    """The sum of squared shares by which each design is missed when the others are fitted."""
    missed = 0.0
    for row in range(len(values)):
        others = np.arange(len(values)) != row
        if others.any():
            own = matrix[row] @ _penalized(matrix[others], values[others], penalty)
            missed += float(own / values[row] - 1) ** 2
    return missed
