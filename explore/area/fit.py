"""Fits the area model's coefficients to measured cores: non-negative least squares per unit.

A coefficient below zero would be a unit that shrinks where something is added. Errors count by the
size of the core that they belong to, so that small and large cores weigh the same; where a unit was
mapped alone, by the size that cores have on average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vdla.boards.flows.yosys import CORE
from vdla.explore.area.families import Family
from vdla.explore.area.features import features, fitted_as, lut_rams, registers
from vdla.explore.area.model import Coefficients, Model
from vdla.isa.config import Config

Floats = npt.NDArray[np.float64]
KNOWN = {"lut": lut_rams, "ff": registers}  # what follows from the structure, by resource
RESOURCES = tuple(KNOWN)
TOLERANCE = 1e-10  # of a gradient, beside the largest product of features and counts


@dataclass(frozen=True)
class Measured:
    """A core that was mapped, and what each of its units took, by resource.

    A ``flat`` core's units were not kept apart: all is in one. Of others, a unit may have been
    mapped ``alone``.
    """

    config: Config
    units: Mapping[str, Mapping[str, float]]
    flat: bool
    held_out: bool

    def total(self, resource: str) -> float:
        """All units' count of a resource."""
        return sum(counts.get(resource, 0.0) for counts in self.units.values())

    @property
    def alone(self) -> bool:
        """Whether one unit was mapped, and not the core."""
        return not self.flat and CORE not in self.units

    @classmethod
    def of(cls, row: Mapping[str, Any], config: Config) -> Measured:
        """Measurement of a config, from a line of the measurements."""
        return cls(config, row["units"], row["flat"], row["held_out"])


def fit(measured: Sequence[Measured], family: Family) -> Model:
    """The family's model that fits the cores whose units were kept apart.

    What is left where they aren't follows from cores that were mapped both ways.
    """
    apart = [m for m in measured if not m.flat and not m.held_out]
    luts, ffs = (_coefficients(apart, family, resource) for resource in RESOURCES)
    both = [
        (m, flat)
        for m in apart
        for flat in measured
        if flat.flat and not flat.held_out and flat.config.hash == m.config.hash
    ]
    shared = {
        resource: round(float(np.mean([_share(m, flat, family, resource) for m, flat in both])), 4)
        if both
        else 1.0
        for resource in RESOURCES
    }
    return Model(family, luts, ffs, shared["lut"], shared["ff"])


def _share(apart: Measured, flat: Measured, family: Family, resource: str) -> float:
    """Share of a core that is left where units aren't kept apart, beside what is known
    to be gone.
    """
    known = KNOWN[resource]
    before, after = (sum(known(flat.config, family, apart=each).values()) for each in (True, False))
    return flat.total(resource) / (apart.total(resource) - before + after)


def _coefficients(apart: Sequence[Measured], family: Family, resource: str) -> Coefficients:
    """Coefficients of one resource, by unit and feature."""
    rows: dict[str, list[tuple[Mapping[str, float], float, float]]] = {}
    typical = float(np.mean([m.total(resource) for m in apart if not m.alone]))
    for m in apart:
        known, alike = KNOWN[resource](m.config, family, apart=True), fitted_as(m.config)
        for unit, values in features(m.config, family, apart=True).items():
            if m.alone and unit not in m.units:
                continue
            count = m.units.get(unit, {}).get(resource, 0.0) - known.get(unit, 0)
            size = typical if m.alone else m.total(resource)
            rows.setdefault(alike.get(unit, unit), []).append((values, count, size))
    return {unit: _of_unit(each) for unit, each in rows.items()}


def _of_unit(rows: Sequence[tuple[Mapping[str, float], float, float]]) -> dict[str, float]:
    names = list(rows[0][0])
    weights = np.array([1 / total for _, _, total in rows])
    matrix = np.array([[float(values[n]) for n in names] for values, _, _ in rows])
    counts = np.array([count for _, count, _ in rows])
    result = non_negative(matrix * weights[:, None], counts * weights)
    return {n: round(float(x), 4) for n, x in zip(names, result, strict=True) if x >= 5e-5}


def non_negative(matrix: Floats, wanted: Floats) -> Floats:
    """The x of no negative element for which ``matrix @ x`` is nearest ``wanted``.

    The active set of Lawson and Hanson, Solving Least Squares Problems (1974), chapter 23.
    """
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0] = 1.0
    scaled = matrix / scale
    x = np.zeros(matrix.shape[1])
    free = np.zeros(len(x), dtype=bool)
    limit = TOLERANCE * float(np.abs(scaled.T @ wanted).max(initial=0.0))
    while True:
        gradient = scaled.T @ (wanted - scaled @ x)
        gradient[free] = -np.inf
        best = int(np.argmax(gradient)) if len(x) else 0
        if free.all() or gradient[best] <= limit:
            return np.asarray(x / scale)
        free[best] = True
        while True:
            trial = np.zeros(len(x))
            trial[free] = np.linalg.lstsq(scaled[:, free], wanted, rcond=None)[0]
            below = free & (trial <= 0)
            if not below.any():
                x = trial
                break
            step = float(np.min(x[below] / (x[below] - trial[below])))
            x = x + step * (trial - x)
            free &= x > TOLERANCE * float(x.max(initial=1.0))
            x[~free] = 0.0
