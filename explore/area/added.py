"""Seams of the area's model: what options add to the units of a core.

    @adds_features("LOAD", behind="address bits")
    def load(config: Config, unit: str) -> Features: ...

A config without the option has the same features, which are 0: coefficients are fitted over all
configs at once. All that is added comes in the order of the ISA's options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from vdla.explore.area.rams import Memory
from vdla.isa.config import Config
from vdla.support.seams import Seam

Features = Mapping[str, float]
OfUnit = Callable[[Config, str], Features]  # by the unit's name
MICRO_OPS = "engines of micro-ops"  # all units that are one, in the place of a name


@dataclass(frozen=True)
class Added:
    """Features of some units, and where they stand among those that these have: behind one of them,
    before one, or at the end."""

    units: tuple[str, ...]
    values: OfUnit
    behind: str = ""
    before: str = ""

    def join(self, own: Features, config: Config, unit: str) -> Features:
        """A unit's features with these."""
        names = list(own)
        at = names.index(self.behind) + 1 if self.behind else len(names)
        at = names.index(self.before) if self.before else at
        rows = list(own.items())
        return dict([*rows[:at], *self.values(config, unit).items(), *rows[at:]])


FEATURES: Seam[Added] = Seam()
UNITS: Seam[Callable[[Config], Mapping[str, Features]]] = Seam()  # that a config has more
REGISTERS: Seam[Callable[[Config], Mapping[str, int]]] = Seam()  # flip-flops, by units
# Memories of units: the unit, one of them, and how many there are.
MEMORIES: Seam[Callable[[Config], Iterator[tuple[str, Memory, int]]]] = Seam()
# Read ports that scratchpads have more, by their names: the bits that each reads.
PORTS: Seam[Callable[[Config], Mapping[str, Sequence[frozenset[int]]]]] = Seam()
FABRIC_LANES: Seam[Callable[[Config], int]] = Seam()  # lanes of GEMM whose products have no DSPs


def adds_features(*units: str, behind: str = "", before: str = "") -> Callable[[OfUnit], OfUnit]:
    """Has a function give features of some units."""

    def add(values: OfUnit) -> OfUnit:
        FEATURES.add(Added(units, values, behind, before))
        return values

    return add


def with_added(kind: str, own: Features, config: Config, unit: str = "") -> Features:
    """Features with those of options for a unit, or for all of a kind, of which ``unit`` is one."""
    for each in FEATURES:
        if kind in each.units:
            own = each.join(own, config, unit or kind)
    return own


def lanes_in_fabric(config: Config) -> int:
    """Lanes of an ACC vector whose products are made of LUTs."""
    return sum(lanes(config) for lanes in FABRIC_LANES)
