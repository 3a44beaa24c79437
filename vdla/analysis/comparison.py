"""Latency hiding, layer by layer: the same layer with one virtual thread and with several.

Each layer runs alone and cold on the cycle simulator, with the best schedule known for each number
of threads, tuned or the analytic model's: the baseline is the best one thread can do, not the
hidden schedule made serial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdla.analysis import hiding
from vdla.analysis.end_to_end import EndToEnd, modelled_end_to_end
from vdla.analysis.hiding import Work
from vdla.analysis.published import Published
from vdla.analysis.rows import Row, data_frame, rows_of
from vdla.compiler.build import place_models
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.placement import ACCELERATOR, processor_layers
from vdla.compiler.targets.accelerator.operators.template import Operator, tile_text
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.compiler.targets.accelerator.standalone import LayerProgram, layer_program
from vdla.compiler.targets.processor.timing.model import HostTime
from vdla.isa.config import Config
from vdla.sim.counts import Counts, counts_of
from vdla.sim.energy import Energy, EnergyTable, energy
from vdla.sim.machine import Run, simulate
from vdla.sim.stream import Stream
from vdla.support.tables import html_table

if TYPE_CHECKING:
    from pandas import DataFrame

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Measured:
    """One layer with one number of virtual threads."""

    cycles: int
    utilization: float
    tile: str
    run: Run
    program: LayerProgram

    @cached_property
    def counts(self) -> Counts:
        """Counts of the layer's work: the same for each run of its program."""
        program = self.program.program
        stream = Stream.of(program.config, program.instructions, program.base)
        return counts_of(stream, self.program.dram, self.run)

    @cached_property
    def work(self) -> dict[str, Work]:
        """The work of each engine but GEMM's, and how much of it GEMM hides."""
        return hiding.work(self.run)


@dataclass(frozen=True)
class Layer:
    """One layer against its bound; cycles of the bound are not rounded."""

    name: str
    macs: int
    dram_bytes: int
    compute_cycles: float
    memory_cycles: float
    measured: dict[int, Measured]

    @property
    def bound_cycles(self) -> float:
        """No schedule is faster: every multiply-add and every byte takes its time."""
        return max(self.compute_cycles, self.memory_cycles)

    @property
    def bound_by(self) -> str:
        """The part of the machine that sets the bound: ``memory`` or ``multipliers``."""
        return "memory" if self.memory_cycles > self.compute_cycles else "multipliers"


@dataclass(frozen=True, repr=False)
class Comparison:
    """All layers of a model on one config, and the layers the host keeps, with the reason.

    ``placement`` has a row per operator, like that of ``vdla run --json``; ``published`` is what
    others have of this model on such a machine, ``host_time`` what a host takes for its part, by a
    model of it.
    """

    config: Config
    layers: list[Layer]
    host: dict[str, str] = field(default_factory=dict)
    placement: list[dict[str, str]] = field(default_factory=list)
    published: Published | None = None
    energy_table: EnergyTable | None = None
    host_time: HostTime | None = None

    @property
    def vthreads(self) -> list[int]:
        """The numbers of virtual threads compared."""
        return list(self.layers[0].measured) if self.layers else []

    @property
    def macs(self) -> int:
        """Multiply-adds of all layers."""
        return sum(layer.macs for layer in self.layers)

    def cycles(self, vthreads: int) -> int:
        """Cycles of all layers, one after the other."""
        return sum(layer.measured[vthreads].cycles for layer in self.layers)

    def utilization(self, vthreads: int) -> float:
        """Utilization of all layers: cycles that the multiply-adds need over cycles taken."""
        cycles = self.cycles(vthreads)
        return self.macs / self.config.macs_per_cycle / cycles if cycles else 0.0

    def end_to_end(self, vthreads: int) -> EndToEnd | None:
        """The time of an inference, host and all; None where the host's isn't known."""
        if self.host_time is None:
            return None
        return modelled_end_to_end(self.host_time, self.cycles(vthreads), self.config)

    def work(self, vthreads: int) -> dict[str, Work]:
        """The work of each engine but GEMM's in all layers, by the engine's name."""
        layers = [layer.measured[vthreads].work for layer in self.layers]
        names = [engine.name for engine in hiding.others(self.config)]
        return {name: hiding.total(work[name] for work in layers) for name in names}

    def energy(self, vthreads: int) -> dict[str, Energy]:
        """The energy of each layer, by its name; of none without a table."""
        if self.energy_table is None:
            return {}
        return {
            layer.name: energy(layer.measured[vthreads].counts, self.config, self.energy_table)
            for layer in self.layers
        }

    def rows(self) -> list[Row]:
        """A row for each layer and number of virtual threads, as ``vdla compare --csv`` writes."""
        layers, latency = self.to_json()["layers"], self.config.memory.latency
        return list(rows_of(self.config.name, latency, layers, self.vthreads))

    def to_pandas(self) -> DataFrame:
        """``rows`` as a table of pandas.

        Raises:
            UserError: pandas isn't installed.
        """
        return data_frame(self.rows())

    def __repr__(self) -> str:
        totals = ", ".join(
            f"{v}: {self.cycles(v):,} cycles at {100 * self.utilization(v):.1f} %"
            for v in self.vthreads
        )
        return f"Comparison({len(self.layers)} layers on {self.config.name}, {{{totals}}})"

    def _repr_html_(self) -> str:
        """Table of layers, as a notebook shows it."""
        threads = self.vthreads
        columns = ["layer", "bound", *(f"cycles {v}" for v in threads)]
        columns += [f"utilization {v}" for v in threads]
        rows: list[list[object]] = [
            [layer.name, round(layer.bound_cycles)]
            + [layer.measured[v].cycles for v in threads]
            + [layer.measured[v].utilization for v in threads]
            for layer in self.layers
        ]
        bound = round(sum(layer.bound_cycles for layer in self.layers))
        rows.append(["all", bound, *map(self.cycles, threads), *map(self.utilization, threads)])
        title = f"Latency hiding on {self.config.name}, memory {self.config.memory.name}"
        return html_table(title, columns, rows, "columns by virtual threads")

    def to_json(self) -> dict[str, Any]:
        """The object of ``vdla compare --json``."""
        by_threads = {v: self.energy(v) for v in self.vthreads}
        table = self.energy_table
        return {
            "config": self.config.name,
            "memory": self.config.to_dict()["memory"],
            "layers": [
                _layer_json(layer) | _energy_json(layer.name, by_threads) for layer in self.layers
            ],
            **({"energy_table": table.name} if table else {}),
            "host_layers": processor_layers(self.placement)[0],
            "end_to_end": {
                str(v): whole.to_json() for v in self.vthreads if (whole := self.end_to_end(v))
            },
            "total": {
                "macs": self.macs,
                "bound_cycles": sum(layer.bound_cycles for layer in self.layers),
                "cycles": {str(v): self.cycles(v) for v in self.vthreads},
                "utilization": {str(v): self.utilization(v) for v in self.vthreads},
                "work": {str(v): _work_json(self.work(v)) for v in self.vthreads},
                **_energy_json(None, by_threads),
            },
        }


@dataclass(frozen=True)
class Workload:
    """Part of a model that is measured: operators with multiply-adds, by layer; the rest as
    remarks.

    It depends on the accelerator, not on its memory.
    """

    operators: list[tuple[str, Operator]]
    host: dict[str, str]
    placement: list[dict[str, str]]


def compare_models(
    paths: dict[str, Path],
    config: Config,
    vthreads: Sequence[int] = (1, 2),
    progress: Progress = lambda what, done, total: None,
    records: TileRecords | None = BUNDLED,
    shapes: Shapes | None = None,
) -> Comparison:
    """Compares every accelerator layer with multiply-adds in some models.

    Args:
        paths: ONNX files by name; where there are several, their layers take the files' names.
        config: the accelerator and its memory.
        vthreads: the numbers of virtual threads.
        progress: told (layer, done, of).
        records: tuned schedules; None leaves all to the analytic model.
        shapes: the sizes that the models leave open.
    """
    return measure(find_workload(paths, config, shapes), config, vthreads, progress, records)


def find_workload(paths: dict[str, Path], config: Config, shapes: Shapes | None = None) -> Workload:
    """Imports and places some models."""
    result = Workload([], {}, [])
    for name, model in place_models(paths, config, shapes).items():
        layers = [(layer, op) for layer, op in model.layers if op.macs]
        rows = model.rows
        reasons = {row["name"]: row["reason"] for row in rows if row["device"] != ACCELERATOR}
        result.operators.extend(layers)
        if len(paths) == 1:
            result.host.update(reasons)
            result.placement.extend(rows)
            continue
        titles = {op.node.name: layer for layer, op in layers}
        for row in rows:
            title = titles.get(row["name"], f"{name}: {row['name']}")
            result.placement.append({**row, "name": title})
        if not layers:
            why = (reason for reason in reasons.values() if "channel" in reason)
            result.host[name] = next(why, "no such layer")
    return result


def measure(
    work: Workload,
    config: Config,
    vthreads: Sequence[int],
    progress: Progress = lambda what, done, total: None,
    records: TileRecords | None = BUNDLED,
) -> Comparison:
    """Simulates every layer of a workload with every number of virtual threads."""
    layers = []
    for done, (name, op) in enumerate(work.operators):
        progress(name, done, len(work.operators))
        layers.append(_measure(name, op, config, vthreads, records))
    return Comparison(config, layers, work.host, work.placement)


def _measure(
    name: str, op: Operator, config: Config, vthreads: Sequence[int], records: TileRecords | None
) -> Layer:
    compute = op.macs / config.macs_per_cycle
    measured = {}
    for threads in vthreads:
        tile = default_tile(op.template, config, threads, records)
        program = layer_program(op, tile, config)
        run = simulate(
            config,
            program.program.instructions,
            program.dram,
            program.program.base,
            numerics=False,
        )
        measured[threads] = Measured(
            run.cycles, compute / run.cycles, tile_text(tile), run, program
        )
    moving = op.dram_bytes / config.bytes_per_cycle
    return Layer(name, op.macs, op.dram_bytes, compute, moving, measured)


def _layer_json(layer: Layer) -> dict[str, object]:
    return {
        "name": layer.name,
        "macs": layer.macs,
        "dram_bytes": layer.dram_bytes,
        "compute_cycles": layer.compute_cycles,
        "memory_cycles": layer.memory_cycles,
        "bound_cycles": layer.bound_cycles,
        "cycles": {str(v): m.cycles for v, m in layer.measured.items()},
        "utilization": {str(v): m.utilization for v, m in layer.measured.items()},
        "work": {str(v): _work_json(m.work) for v, m in layer.measured.items()},
    }


def _energy_json(
    layer: str | None, by_threads: Mapping[int, Mapping[str, Energy]]
) -> dict[str, Any]:
    """A layer's energy in µJ by threads, or that of all layers; nothing without a table."""
    totals = {
        str(v): sum(e.total_uj for name, e in layers.items() if layer in (None, name))
        for v, layers in by_threads.items()
        if layers
    }
    return {"energy_uj": totals} if totals else {}


def _work_json(work: Mapping[str, Work]) -> dict[str, object]:
    return {engine: asdict(each) for engine, each in work.items()}
