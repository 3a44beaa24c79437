"""Sweep of latency hiding as memory gets slower.

The compiler knows the memory it compiles for, so schedules are chosen anew at each latency: a point
is what ``vdla compare --set memory.latency=N`` prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vdla.analysis.comparison import Comparison, Progress, find_workload, measure
from vdla.analysis.rows import Row, data_frame, rows_of
from vdla.compiler.frontend.shapes import Shapes
from vdla.compiler.targets.accelerator.search.tile_records import BUNDLED, TileRecords
from vdla.isa.config import Config

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Point:
    """The figures of a comparison at one latency, as in its JSON: streams and runs aren't kept."""

    latency: int
    total: dict[str, Any]
    layers: list[dict[str, Any]]

    def cycles(self, vthreads: int) -> int:
        """Cycles of all layers, one after the other."""
        return int(self.total["cycles"][str(vthreads)])

    def utilization(self, vthreads: int) -> float:
        """Utilization of all layers, as ``Comparison.utilization`` has it."""
        return float(self.total["utilization"][str(vthreads)])


@dataclass(frozen=True, repr=False)
class Sweep:
    """A comparison at its config's own latency, and the figures at every latency asked for."""

    base: Comparison
    points: list[Point]

    @property
    def config(self) -> Config:
        """The accelerator, with the memory that ``base`` was measured with."""
        return self.base.config

    @property
    def vthreads(self) -> list[int]:
        """The numbers of virtual threads compared."""
        return self.base.vthreads

    def rows(self) -> list[Row]:
        """A row for each latency, layer and number of virtual threads."""
        name, threads = self.config.name, self.vthreads
        return [r for p in self.points for r in rows_of(name, p.latency, p.layers, threads)]

    def to_pandas(self) -> DataFrame:
        """``rows`` as a table of pandas.

        Raises:
            UserError: pandas isn't installed.
        """
        return data_frame(self.rows())

    def __repr__(self) -> str:
        latencies = ", ".join(str(point.latency) for point in self.points)
        return f"Sweep({len(self.base.layers)} layers on {self.config.name}, latencies {latencies})"

    def to_json(self) -> dict[str, Any]:
        """The object of ``vdla compare --latency … --json``."""
        base = self.base.to_json()
        return {
            "config": base["config"],
            "memory": base["memory"],
            "sweep": [vars(point) for point in self.points],
        }


def sweep_latency(
    paths: dict[str, Path],
    config: Config,
    latencies: Sequence[int],
    vthreads: Sequence[int] = (1, 2),
    progress: Progress = lambda what, done, total: None,
    records: TileRecords | None = BUNDLED,
    shapes: Shapes | None = None,
) -> Sweep:
    """Measures some models at every latency, in the order given.

    Args:
        paths: ONNX files by name; where there are several, their layers take the files' names.
        config: the accelerator; its memory's latency is measured too.
        latencies: cycles from a read request to its first beat.
        vthreads: the numbers of virtual threads.
        progress: told (layer at latency, done, of).
        records: tuned schedules; None leaves all to the analytic model.
        shapes: the sizes that the models leave open.

    Raises:
        ConfigError: a latency is out of its range.
    """
    configs = {n: config.override([f"memory.latency={n}"]) for n in latencies}
    rest = [n for n in latencies if n != config.memory.latency]
    work = find_workload(paths, config, shapes)

    def at(latency: int, turn: int) -> Progress:
        def told(layer: str, done: int, total: int) -> None:
            progress(f"{layer} at {latency}", turn * total + done, (1 + len(rest)) * total)

        return told

    base = measure(work, config, vthreads, at(config.memory.latency, 0), records)
    points = {config.memory.latency: _point(config.memory.latency, base)}
    for turn, latency in enumerate(rest, 1):
        result = measure(work, configs[latency], vthreads, at(latency, turn), records)
        points[latency] = _point(latency, result)
    return Sweep(base, [points[n] for n in latencies])


def _point(latency: int, comparison: Comparison) -> Point:
    json = comparison.to_json()
    return Point(latency, json["total"], json["layers"])
