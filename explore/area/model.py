"""The area model: what a core takes of a family's devices, without a mapping.

Multipliers and block RAMs follow from the structure and are exact. LUTs and flip-flops are a sum
over features (``features.py``) with coefficients that ``tools/area_fit.py`` fits to mappings
by yosys, unit by unit. yosys shares some logic among units where they aren't kept apart, as in the
flows that make bitstreams: a factor of the whole, fitted too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from vdla.boards.board import Board
from vdla.boards.flows.fit import over
from vdla.boards.parts import Part
from vdla.explore.area.families import DEFAULT, FAMILIES, Family
from vdla.explore.area.features import features, fitted_as, lut_rams, registers
from vdla.explore.area.structure import CONFIGS, block_rams, dsps
from vdla.isa.config import Config

Coefficients = Mapping[str, Mapping[str, float]]  # by unit and feature


@dataclass(frozen=True)
class Counts:
    """LUTs, flip-flops, multipliers, and block RAMs in the family's unit: DP16KD of an ECP5; of a
    7-series device RAMB36, of which a RAMB18 is half."""

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
    """Coefficients of a family's LUTs and flip-flops, and what is left where units share logic."""

    family: Family
    luts: Coefficients
    ffs: Coefficients
    shared_luts: float
    shared_ffs: float


@lru_cache(maxsize=CONFIGS)  # a bound asks whether it fits, and then what it is
def estimate(config: Config, family: str = DEFAULT) -> Area:
    """A core's area on a device of a family as yosys maps it flat, in a millisecond.

    Multipliers and block RAMs are exact; ``tools/area_fit.py`` prints how far LUTs and
    flip-flops are off. On an ECP5 it is the area of a ULX3S's whole design around the core.
    """
    return estimate_by(model(family), config)


def estimate_by(model: Model, config: Config) -> Area:
    """A core's area by a model."""
    family = model.family
    memories, kept = lut_rams(config, family), registers(config, family)
    multipliers, rams = dsps(config, family), block_rams(config, family)
    units, alike = {}, fitted_as(config)
    for unit, values in features(config, family).items():
        kind = alike.get(unit, unit)
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
def model(family: str = DEFAULT) -> Model:
    """The family's model that ships with the package."""
    chosen = FAMILIES[family]
    data = tomllib.loads(chosen.model_path.read_text())
    shared = data["shared"]
    return Model(chosen, data["lut"], data["ff"], shared["lut"], shared["ff"])


def fits(area: Counts, part: Part | Board) -> list[str]:
    """Reasons for which an area doesn't fit a part: one for each resource of which it has too
    little.

    Args:
        area: What a core takes.
        part: A part of ``boards/parts.py``, or a board with what its designs may use.
    """
    return over(part.available, area.by_resource)
