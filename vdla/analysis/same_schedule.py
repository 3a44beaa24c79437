"""Latency hiding with the schedule held still: what each means of it buys by itself.

``vdla compare`` sets the best schedule of one virtual thread against the best of several: tiles
differ. Here a layer keeps the tile of its best hidden schedule, and only the means of hiding
change, each an axis of its own:

    serialized     tokens let no two engines work at once; threads and copies as in the schedule
    LOAD alone     tokens let LOAD work while no other engine does; so for each engine but GEMM's
    neither        one virtual thread, one copy of every buffer; engines overlap where data allows
    copies         one virtual thread, with the schedule's copies of what streams by (``stages``)
    threads        the schedule's virtual threads, with one copy of what streams by
    both           the schedule as it is

What an engine's work beside the others brings is the difference between ``both`` and the variant in
which it works alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from vdla.analysis import hiding
from vdla.analysis.comparison import Progress, Workload
from vdla.compiler.targets.accelerator.operators.template import Operator, Tile, tile_text
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.compiler.targets.accelerator.standalone import layer_program
from vdla.isa.config import Config
from vdla.isa.ring import Engine, engines
from vdla.sim.machine import simulate

VARIANTS = ("serialized", "neither", "copies", "threads", "both")  # on every config


def variants(config: Config) -> tuple[str, ...]:
    """The variants in which schedules of a config are simulated, in the order of tables."""
    serialized, *rest = VARIANTS
    return serialized, *_alone(config), *rest


def _alone(config: Config) -> dict[str, Engine]:
    """The variants in which one engine works alone, and which."""
    return {f"{engine.name} alone": engine for engine in hiding.others(config)}


@dataclass(frozen=True)
class SameLayer:
    """One layer's cycles by variant, and the schedule that all of them share."""

    name: str
    macs: int
    schedule: str
    cycles: Mapping[str, int]


@dataclass(frozen=True)
class SameSchedule:
    """All layers of a model on one config, each with one schedule."""

    config: Config
    vthreads: int
    layers: Sequence[SameLayer]

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that each layer has, in the order of tables."""
        return variants(self.config)

    def cycles(self, variant: str) -> int:
        """Cycles of all layers, one after the other."""
        return sum(layer.cycles[variant] for layer in self.layers)

    def utilization(self, variant: str) -> float:
        """Utilization of all layers: cycles that the multiply-adds need over cycles taken."""
        macs = sum(layer.macs for layer in self.layers)
        return macs / self.config.macs_per_cycle / self.cycles(variant)

    def layer_utilization(self, layer: SameLayer, variant: str) -> float:
        """Utilization of one layer."""
        return layer.macs / self.config.macs_per_cycle / layer.cycles[variant]

    def to_json(self) -> dict[str, object]:
        """The part ``same_schedule`` of ``vdla compare --same-schedule --json``."""
        return {
            "vthreads": self.vthreads,
            "layers": [
                {
                    "name": layer.name,
                    "schedule": layer.schedule,
                    "cycles": dict(layer.cycles),
                    "utilization": {v: self.layer_utilization(layer, v) for v in self.variants},
                }
                for layer in self.layers
            ],
            "total": {
                "cycles": {v: self.cycles(v) for v in self.variants},
                "utilization": {v: self.utilization(v) for v in self.variants},
            },
        }


def same_schedule(
    work: Workload,
    config: Config,
    vthreads: int = 2,
    progress: Progress = lambda what, done, total: None,
    records: TileRecords | None = BUNDLED,
) -> SameSchedule:
    """Simulates every layer of a workload in every variant of its schedule for ``vthreads``."""
    layers = []
    for done, (name, op) in enumerate(work.operators):
        progress(f"{name}, one schedule", done, len(work.operators))
        tile = default_tile(op.template, config, vthreads, records)
        cycles = {
            v: _cycles(op, _variant(tile, v), config, _working_alone(config, v))
            for v in variants(config)
        }
        layers.append(SameLayer(name, op.macs, tile_text(tile), cycles))
    return SameSchedule(config, vthreads, layers)


def _variant(tile: Tile, variant: str) -> Tile:
    """The tile with fewer threads or copies; operators without copies have the threads alone."""
    changes = {}
    if variant in ("neither", "copies"):
        changes["vthreads"] = 1
    if variant in ("neither", "threads") and hasattr(tile, "stages"):
        changes["stages"] = 1
    return replace(tile, **changes)


def _working_alone(config: Config, variant: str) -> Collection[Engine]:
    """The engines that tokens keep from working beside others."""
    if variant == "serialized":
        return engines(config)
    engine = _alone(config).get(variant)
    return () if engine is None else (engine,)


def _cycles(op: Operator, tile: Tile, config: Config, alone: Collection[Engine]) -> int:
    built = layer_program(op, tile, config, alone=alone)
    program = built.program
    return simulate(config, program.instructions, built.dram, program.base, numerics=False).cycles
