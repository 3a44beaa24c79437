"""What a design is worth: cycles of some networks, area, and why it can't be built.

An evaluation is a pure function of the networks, the config, the level and the schedules, so that
whoever has the :class:`Evaluator` may do it: another process, another machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from math import inf
from typing import Protocol

from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
from vdla.explore.errors import ExploreError
from vdla.explore.networks import Networks, bound_cycles
from vdla.isa.config import Config

BOUND, MODEL, EXACT, TUNED = "bound", "model", "exact", "tuned"  # levels, from the cheapest
NO_PART = "none"
AREA = "vdla.explore.area"
AREA_OBJECTIVES = ("luts", "ffs", "dsps", "brams")
OBJECTIVES = ("cycles", *AREA_OBJECTIVES, "multipliers", "buffer_bytes")


class Area(Protocol):
    """What a design takes of an FPGA: LUTs, flip-flops, DSP blocks, block RAMs."""

    @property
    def luts(self) -> float:
        """Look-up tables."""

    @property
    def ffs(self) -> float:
        """Flip-flops."""

    @property
    def dsps(self) -> float:
        """DSP blocks."""

    @property
    def brams(self) -> float:
        """Block RAMs; half of one counts 0.5."""


def area_of(config: Config) -> Area | None:
    """The estimated area of a design; None where there is no model of areas."""
    if find_spec(AREA) is None:
        return None
    area: Area = import_module(AREA).estimate(config)
    return area


def excess(config: Config, part: str) -> list[str]:
    """What of a design a part has too little of, a reason each; none for part ``none``.

    Raises:
        ExploreError: there is no such part, or no model of areas.
    """
    area = None if part == NO_PART else area_of(config)
    if part == NO_PART:
        return []
    if area is None:
        raise ExploreError(f"--part {part}: expected none without a model of areas, found {part}")
    reasons: list[str] = import_module(AREA).fits(area, part)
    return reasons


@dataclass(frozen=True)
class Evaluation:
    """What a design is worth.

    ``level`` is how ``cycles``, by model, were found: by the bound, by the analytic model, or
    exactly, with that model's schedules or tuned ones. ``total`` is their weighted sum, infinity
    for a design that ``reasons`` call illegal. ``layers`` are a model's cycles by layer, where they
    are known.
    """

    config: Config
    level: str
    cycles: Mapping[str, float]
    total: float
    area: Area | None = None
    reasons: tuple[str, ...] = ()
    layers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def legal(self) -> bool:
        """Whether the design can be built and runs all networks."""
        return not self.reasons

    def objective(self, name: str) -> float:
        """One of ``OBJECTIVES``, to be minimized; infinity for an illegal design."""
        if not self.legal:
            return inf
        if name == "cycles":
            return self.total
        if name in AREA_OBJECTIVES:
            return inf if self.area is None else float(getattr(self.area, name))
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
            "networks": {
                name: {"cycles": number(cycles), "layers": dict(self.layers.get(name, {}))}
                for name, cycles in self.cycles.items()
            },
            **area,
            "multipliers": multipliers(self.config),
            "buffer_bytes": buffers(self.config),
        }


def multipliers(config: Config) -> int:
    """Multiply-adds that GEMM does in a cycle."""
    return config.macs_per_cycle


def buffers(config: Config) -> int:
    """Bytes of the on-chip memories."""
    own = (config.inp_bytes, config.wgt_bytes, config.acc_bytes, config.uop_bytes)
    return sum(own) + config.table_bytes


def number(value: float | None) -> float | int | None:
    """A number for JSON: an integer where it is one, null where it is infinite or unknown."""
    if value is None or value in (inf, -inf):
        return None
    return int(value) if value == int(value) else value


def check_objectives(names: Sequence[str]) -> None:
    """Raises ExploreError unless these are one to three distinct objectives that can be known."""
    known = OBJECTIVES if find_spec(AREA) else tuple(n for n in OBJECTIVES if n not in
                                                      AREA_OBJECTIVES)  # fmt: skip
    for name in names:
        if name not in known:
            raise ExploreError(f"--objectives: expected some of {', '.join(known)}, found {name}")
    if not 1 <= len(names) <= 3 or len(set(names)) < len(names):
        text = f"--objectives: expected one to three, each once, found {','.join(names) or 'none'}"
        raise ExploreError(text)


@dataclass(frozen=True)
class Evaluator:
    """Evaluates designs for some models on a part; it can be pickled.

    ``models`` are the names of the networks that each model is made of, by its name; a model's
    cycles are the sum of theirs. ``weights`` are the models' shares of the total, 1 unless given.
    """

    networks: Networks
    models: Mapping[str, Sequence[str]]
    weights: Mapping[str, float] = field(default_factory=dict)
    part: str = NO_PART

    def bound(self, config: Config) -> Evaluation:
        """What a design is worth at best: cycles that no schedule goes below; nothing is compiled.
        An exact evaluation may find further reasons against it."""
        work = self.networks.work(config)
        cycles = {name: bound_cycles(each, config) for name, each in work.items()}
        refusals = {name: each.refusal for name, each in work.items()}
        return self._evaluation(config, BOUND, cycles, refusals)

    def model(self, config: Config) -> Evaluation:
        """What a design is worth by the analytic model: nothing is compiled, but the schedules are
        chosen."""
        estimates = self.networks.estimate(config)
        cycles = {name: each.cycles for name, each in estimates.items()}
        refusals = {name: each.refusal for name, each in estimates.items()}
        return self._evaluation(config, MODEL, cycles, refusals)

    def exact(self, config: Config, records: TileRecords | None = None) -> Evaluation:
        """What a design is worth by the cycles of the compiled streams: with the analytic model's
        schedules, or with tuned ones where ``records`` have them."""
        runs = self.networks.exact(config, records)
        cycles = {n: inf if run.cycles is None else float(run.cycles) for n, run in runs.items()}
        refusals = {name: run.refusal for name, run in runs.items()}
        layers = {
            model: _layers({name: runs[name].layers for name in names})
            for model, names in self.models.items()
        }
        level = EXACT if records is None else TUNED
        return self._evaluation(config, level, cycles, refusals, layers)

    def _evaluation(
        self,
        config: Config,
        level: str,
        cycles: Mapping[str, float],
        refusals: Mapping[str, str],
        layers: Mapping[str, Mapping[str, int]] | None = None,
    ) -> Evaluation:
        reasons = [f"{name}: {why}" for name, why in refusals.items() if why]
        reasons += excess(config, self.part)
        by_model = {m: sum(cycles[name] for name in names) for m, names in self.models.items()}
        total = sum(self.weights.get(m, 1.0) * count for m, count in by_model.items())
        total = inf if reasons else total
        area = area_of(config)
        return Evaluation(config, level, by_model, total, area, tuple(reasons), layers or {})


def _layers(networks: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """A model's cycles by layer; where it has several networks, layers take their names along."""
    if len(networks) == 1:
        return dict(*networks.values())
    return {f"{name}.{layer}": n for name, own in networks.items() for layer, n in own.items()}
