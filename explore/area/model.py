"""The area model: what a core takes of a 7-series device, without a mapping.

DSPs and block RAMs follow from the structure and are exact. LUTs and flip-flops are a sum over
features (``features.py``) with coefficients that ``benchmarks/area_fit.py`` fits to mappings by
yosys, unit by unit. yosys shares some logic among units where they aren't kept apart, as in the
flows that make bitstreams: a factor of the whole, fitted too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vdla.boards.board import Board
from vdla.boards.flows.fit import over
from vdla.boards.parts import Part
from vdla.explore.area.features import FITTED_AS, features, lut_rams, registers
from vdla.explore.area.structure import block_rams, dsps
from vdla.isa.config import Config

MODEL = Path(__file__).parent / "data" / "model.toml"

Coefficients = Mapping[str, Mapping[str, float]]  # by unit and feature


@dataclass(frozen=True)
class Counts:
    """LUTs, flip-flops, DSPs, and block RAMs in RAMB36: a RAMB18 is half of one."""

    luts: int
    ffs: int
    dsps: int
    brams: float

    @property
    def by_resource(self) -> dict[str, float]:
        """The counts by the names that boards and parts have for them: lut, ff, dsp, bram."""
        return {"lut": self.luts, "ff": self.ffs, "dsp": self.dsps, "bram": self.brams}


@dataclass(frozen=True)
class Area(Counts):
    """A core's area, and that of its units, by their names in ``vdla synth``'s tables."""

    units: Mapping[str, Counts]


@dataclass(frozen=True)
class Model:
    """Coefficients of LUTs and flip-flops, and what of them is left where units share logic."""

    luts: Coefficients
    ffs: Coefficients
    shared_luts: float
    shared_ffs: float


def estimate(config: Config) -> Area:
    """A core's area on a 7-series device as yosys maps it flat, in a millisecond.

    DSPs and RAMB36 are exact; ``benchmarks/area_fit.py`` prints how far LUTs and flip-flops are
    off.
    """
    return estimate_by(model(), config)


def estimate_by(model: Model, config: Config) -> Area:
    """A core's area by a model."""
    memories, kept = lut_rams(config), registers(config)
    multipliers, rams = dsps(config), block_rams(config)
    units = {}
    for unit, values in features(config).items():
        kind = FITTED_AS.get(unit, unit)
        luts, ffs = (_total(values, each.get(kind, {})) for each in (model.luts, model.ffs))
        units[unit] = Counts(
            luts=round(model.shared_luts * (luts + memories.get(unit, 0))),
            ffs=round(model.shared_ffs * (ffs + kept.get(unit, 0))),
            dsps=multipliers.get(unit, 0),
            brams=rams.get(unit, 0.0),
        )
    every = units.values()
    return Area(
        luts=sum(u.luts for u in every),
        ffs=sum(u.ffs for u in every),
        dsps=sum(u.dsps for u in every),
        brams=sum(u.brams for u in every),
        units=units,
    )


def _total(values: Mapping[str, float], coefficients: Mapping[str, float]) -> float:
    return sum(coefficients.get(name, 0.0) * value for name, value in values.items())


@cache
def model() -> Model:
    """The model that ships with the package."""
    data = tomllib.loads(MODEL.read_text())
    shared = data["shared"]
    return Model(data["lut"], data["ff"], shared["lut"], shared["ff"])


def fits(area: Counts, part: Part | Board) -> list[str]:
    """Why an area doesn't fit a part: a reason for each resource of which it has too little.

    Args:
        area: What a core takes.
        part: A part of ``boards/parts.py``, or a board with what its designs may use.
    """
    return over(part.available, area.by_resource)
