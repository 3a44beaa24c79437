"""The clock's model: the period that a design needs on a family's part, without a mapping.

The period is a sum over features of the config (``features.py``) with coefficients that
``tools/clock_fit.py`` fits to mapped designs: yosys's netlists under static timing (``paths.py``),
whose wires are scaled to designs that were routed. The tool prints how far it is off.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from vdla.explore.clock.families import FAMILIES, Family
from vdla.explore.clock.features import features
from vdla.isa.clock import ESTIMATED, Clock
from vdla.isa.config import Config

CONFIGS = 256  # whose estimates are kept at hand
Coefficients = Mapping[str, float]  # by feature


@dataclass(frozen=True)
class Model:
    """Coefficients of a family's longest path: of its ``period`` in ns, and of its ``levels`` of
    logic. ``wires`` is the factor that routed designs gave the family's wires."""

    family: Family
    period: Coefficients
    levels: Coefficients
    wires: float


@dataclass(frozen=True)
class Estimate:
    """Estimate of a design's clock on a part: the least period in ns, the levels of logic of the
    longest path."""

    part: str
    period_ns: float
    levels: int

    @property
    def mhz(self) -> float:
        """The clock in MHz."""
        return 1e3 / self.period_ns

    @property
    def clock(self) -> Clock:
        """The origin of the clock as a config's file may say it."""
        level_ns = round(self.period_ns / self.levels, 4)
        return Clock(ESTIMATED, part=self.part, levels=self.levels, level_ns=level_ns)


@lru_cache(maxsize=CONFIGS)
def estimate_clock(config: Config, family: str) -> Estimate:
    """A design's clock on a family's part, estimated in a millisecond."""
    return estimate_by(model(family), config)


def estimate_by(model: Model, config: Config) -> Estimate:
    """A design's clock by a model."""
    values = features(config)
    period = _total(values, model.period)
    levels = max(round(_total(values, model.levels)), 1)
    return Estimate(model.family.part, period, levels)


def _total(values: Mapping[str, float], coefficients: Coefficients) -> float:
    return sum(coefficients.get(name, 0.0) * value for name, value in values.items())


@cache
def model(family: str) -> Model:
    """The family's model that ships with the package."""
    chosen = FAMILIES[family]
    data = tomllib.loads(chosen.model_path.read_text())
    return Model(chosen, data["period_ns"], data["levels"], data["wires"]["scale"])
