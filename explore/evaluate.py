"""Evaluation of designs: cycles of some networks, area, and reasons for which they can't be built.

An evaluation is a pure function of the networks, the config, the level and the schedules, so that
whoever has the :class:`Evaluator` may do it: another process, another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import inf
from typing import TYPE_CHECKING, Any, Self

from vdla.boards.parts import LFE5U_85F, XC7Z020, Part
from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
from vdla.explore.design_clock import DesignClock, design_clock
from vdla.explore.errors import ExploreError
from vdla.explore.networks import Networks, Work, bound_cycles
from vdla.isa.config import Config
from vdla.isa.instructions import memories
from vdla.sim.energy import PJ_PER_UJ, EnergyTable, energy
from vdla.support.errors import UserError
from vdla.support.install import pip_install

if TYPE_CHECKING:
    from vdla.explore.area import Area

BOUND, MODEL, EXACT, TUNED = "bound", "model", "exact", "tuned"  # levels, from the cheapest
NO_PART = "none"
PARTS = {XC7Z020.device: XC7Z020, "ulx3s": LFE5U_85F}
AREA_OBJECTIVES = ("luts", "ffs", "dsps", "brams")
ENERGY, MS = "energy", "ms"
OBJECTIVES = ("cycles", MS, *AREA_OBJECTIVES, ENERGY, "multipliers", "buffer_bytes")


class AreaDependencyError(UserError, ImportError):
    """Amaranth isn't installed, by whose sources the area model counts."""


def family_of(part: str) -> str:
    """The family of a part, whose resources areas are counted in; 7-series for part ``none``.

    Raises:
        ExploreError: there is no such part.
    """
    return (_part(part) or XC7Z020).family


def _part(name: str) -> Part | None:
    """A part by its name; None for ``none``."""
    if name not in (*PARTS, NO_PART):
        known = ", ".join((*PARTS, NO_PART))
        raise ExploreError(f"--part: expected one of {known}, found {name}")
    return PARTS.get(name)


def area_of(config: Config, part: str = NO_PART) -> Area | None:
    """The estimated area of a design on a device of the part's family; None without Amaranth.

    Raises:
        ExploreError: there is no such part.
    """
    family = family_of(part)
    try:
        from vdla.explore.area import estimate
    except ImportError:
        return None
    return estimate(config, family)


def excess(area: Area | None, part: str) -> list[str]:
    """Reasons for which a part has too little for an area, one per resource; none for part
    ``none``.

    Raises:
        ExploreError: there is no such part.
        AreaDependencyError: the area isn't known.
    """
    limits = _part(part)
    if limits is None:
        return []
    if area is None:
        raise _without_amaranth(f"--part {part}")
    from vdla.explore.area import fits

    return [f"part {part}: {reason}" for reason in fits(area, limits)]


def _without_amaranth(option: str) -> AreaDependencyError:
    return AreaDependencyError(
        f"{option}: expected the package amaranth, found none; {pip_install('rtl')}"
    )


@dataclass(frozen=True)
class Outcome:
    """Outcome of one network: its cycles, infinite where ``refusal`` says why there are none, those
    of its ``layers``, where they are known, and its energy in µJ, where it was asked for."""

    cycles: float
    refusal: str = ""
    layers: Mapping[str, int] = field(default_factory=dict)
    energy_uj: float | None = None

    def to_json(self) -> dict[str, object]:
        """The outcome as a log has it."""
        return {
            "cycles": number(self.cycles),
            "refusal": self.refusal,
            "layers": dict(self.layers),
            "energy_uj": number(self.energy_uj),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """The outcome of which ``to_json`` made ``value``."""
        cycles = inf if value["cycles"] is None else float(value["cycles"])
        return cls(cycles, value["refusal"], value["layers"], value["energy_uj"])


@dataclass(frozen=True)
class Evaluation:
    """Evaluation of a design.

    ``level`` is how ``cycles``, by model, were found: by the bound, by the analytic model, or
    exactly, with that model's schedules or tuned ones. ``total`` is their weighted sum, infinity
    for a design that ``reasons`` call illegal. ``layers`` are a model's cycles by layer, where they
    are known. ``energy_uj`` is the models' weighted energy by the table ``energy_table``.
    ``area`` is of the part's family: estimated, or by yosys where it is ``mapped``. ``clock`` is a
    model's for the part, or one that is asked for.
    """

    config: Config
    level: str
    cycles: Mapping[str, float]
    total: float
    clock: DesignClock
    area: Area | None = None
    reasons: tuple[str, ...] = ()
    layers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    energy_uj: float | None = None
    energy_table: str | None = None
    mapped: bool = False

    @property
    def legal(self) -> bool:
        """Whether the design can be built and runs all networks."""
        return not self.reasons

    @property
    def ms(self) -> float:
        """The time of ``total`` cycles at the clock, in ms."""
        return self.clock.milliseconds(self.total)

    def objective(self, name: str) -> float:
        """One of ``OBJECTIVES``, to be minimized; infinity for an illegal design."""
        if not self.legal:
            return inf
        if name == "cycles":
            return self.total
        if name == MS:
            return self.ms
        if name in AREA_OBJECTIVES:
            return inf if self.area is None else float(getattr(self.area, name))
        if name == ENERGY:
            return inf if self.energy_uj is None else self.energy_uj
        return float(multipliers(self.config) if name == "multipliers" else buffers(self.config))

    def vector(self, objectives: Sequence[str]) -> tuple[float, ...]:
        """Some objectives, to be minimized."""
        return tuple(map(self.objective, objectives))

    def to_json(self) -> dict[str, object]:
        """Cycles, area and reasons, for programs; what isn't known is null."""
        area = {name: number(getattr(self.area, name, None)) for name in AREA_OBJECTIVES}
        return {
            "level": self.level,
            "legal": self.legal,
            "reasons": list(self.reasons),
            "cycles": number(self.total),
            "ms": number(self.ms),
            "clock_mhz": number(self.clock.mhz),
            "clock_source": self.clock.source,
            "networks": {
                name: {"cycles": number(cycles), "layers": dict(self.layers.get(name, {}))}
                for name, cycles in self.cycles.items()
            },
            **area,
            "mapped": self.mapped,
            "energy_uj": number(self.energy_uj),
            "energy_table": self.energy_table,
            "multipliers": multipliers(self.config),
            "buffer_bytes": buffers(self.config),
        }


def multipliers(config: Config) -> int:
    """Multiply-adds that GEMM does in a cycle."""
    return config.macs_per_cycle


def buffers(config: Config) -> int:
    """Bytes of the on-chip memories."""
    return sum(config.size(buffer) for buffer in {memory.buffer for memory in memories(config)})


def number(value: float | None) -> float | int | None:
    """A number for JSON: an integer where it is one, null where it is infinite or unknown."""
    if value is None or value in (inf, -inf):
        return None
    return int(value) if value == int(value) else value


def check_objectives(names: Sequence[str]) -> None:
    """Raises an error unless these are one to three distinct objectives that can be known here:
    ExploreError, or AreaDependencyError for areas without Amaranth."""
    for name in names:
        if name not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise ExploreError(f"--objectives: expected some of {known}, found {name}")
        if name in AREA_OBJECTIVES and find_spec("amaranth") is None:
            raise _without_amaranth(f"--objectives {name}")
    if not 1 <= len(names) <= 3 or len(set(names)) < len(names):
        text = f"--objectives: expected one to three, each once, found {','.join(names) or 'none'}"
        raise ExploreError(text)


@dataclass(frozen=True)
class Evaluator:
    """Evaluates designs for some models on a part; it can be pickled.

    ``models`` are the names of the networks that each model is made of, by its name; a model's
    cycles are the sum of theirs. ``weights`` are the models' shares of the total, 1 unless given.
    ``table`` is what energy is estimated by, if it is. ``asked_mhz`` is the clock of every design,
    in the place of the model's.
    """

    networks: Networks
    models: Mapping[str, Sequence[str]]
    weights: Mapping[str, float] = field(default_factory=dict)
    part: str = NO_PART
    table: EnergyTable | None = None
    asked_mhz: int | None = None

    def bound(self, config: Config) -> Evaluation:
        """Evaluation of a design at best: cycles that no schedule goes below; nothing is compiled.
        An exact evaluation may find further reasons against it."""
        if excess(area_of(config, self.part), self.part):  # known at once, and reason enough
            unknown = dict.fromkeys(self.networks.names, Outcome(inf))
            return self.evaluation(config, BOUND, unknown)
        work = self.networks.work(config)
        outcomes = {
            name: Outcome(
                bound_cycles(each, config), each.refusal, energy_uj=self._least_energy(each)
            )
            for name, each in work.items()
        }
        return self.evaluation(config, BOUND, outcomes)

    def _least_energy(self, work: Work) -> float | None:
        """The energy of a network's multiply-adds and DRAM traffic alone, in µJ."""
        if self.table is None:
            return None
        events = self.table.events
        pj = work.macs * events["multiply_add"] + 8 * work.dram_bytes * events["dram_bit"]
        return pj / PJ_PER_UJ

    def model(self, config: Config) -> Evaluation:
        """Evaluation of a design by the analytic model: nothing is compiled, but the schedules are
        chosen."""
        return self.evaluation(config, MODEL, self.estimate(config))

    def exact(self, config: Config, records: TileRecords | None = None) -> Evaluation:
        """Evaluation of a design by the cycles of the compiled streams: with the analytic model's
        schedules, or with tuned ones where ``records`` have them."""
        level = EXACT if records is None else TUNED
        return self.evaluation(config, level, self.measure(config, records))

    def estimate(self, config: Config) -> dict[str, Outcome]:
        """Each network by the analytic model, by name."""
        estimates = self.networks.estimate(config)
        return {name: Outcome(each.cycles, each.refusal) for name, each in estimates.items()}

    def measure(self, config: Config, records: TileRecords | None = None) -> dict[str, Outcome]:
        """Each network compiled and simulated, by name."""
        runs = self.networks.exact(config, records, counted=self.table is not None)
        return {
            name: Outcome(
                inf if run.cycles is None else run.cycles,
                run.refusal,
                dict(run.layers),
                None
                if self.table is None or run.counts is None
                else energy(run.counts, config, self.table).total_uj,
            )
            for name, run in runs.items()
        }

    def evaluation(self, config: Config, level: str, outcomes: Mapping[str, Outcome]) -> Evaluation:
        """Evaluation of a design by the outcomes of its networks."""
        reasons = [f"{name}: {each.refusal}" for name, each in outcomes.items() if each.refusal]
        area = area_of(config, self.part)
        reasons += excess(area, self.part)
        cycles = {m: sum(outcomes[n].cycles for n in own) for m, own in self.models.items()}
        total = sum(self.weights.get(model, 1.0) * count for model, count in cycles.items())
        layers = {m: _layers({n: outcomes[n].layers for n in own}) for m, own in
                  self.models.items()}  # fmt: skip
        total = inf if reasons else total
        clock = design_clock(config, family_of(self.part), self.asked_mhz)
        result = Evaluation(config, level, cycles, total, clock, area, tuple(reasons), layers)
        if self.table is None or level == MODEL or reasons:
            return result
        used = {m: sum(outcomes[n].energy_uj or 0.0 for n in own) for m, own in
                self.models.items()}  # fmt: skip
        energy_uj = sum(self.weights.get(model, 1.0) * uj for model, uj in used.items())
        return replace(result, energy_uj=energy_uj, energy_table=self.table.name)


def _layers(networks: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """A model's cycles by layer; where it has several networks, layers take their names along."""
    if len(networks) == 1:
        return dict(*networks.values())
    return {f"{name}.{layer}": n for name, own in networks.items() for layer, n in own.items()}
