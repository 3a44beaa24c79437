"""Searches for the tiles of a model's layers: each distinct workload once.

The first trials are the schedules known without any search: the analytic default, the bundled one,
and what records of older sources found best. Records of other layers and configs teach the learned
searcher before its own first trial. A tile that can't be faster than the best one is never tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vdla.compiler.search.searchers import LEARNED, UNTAUGHT, ModelSearcher, Searcher
from vdla.compiler.search.table import Features, Table
from vdla.compiler.search.tuner import Task, TuneOptions
from vdla.compiler.targets.accelerator.operators.template import Operator, Tile
from vdla.compiler.targets.accelerator.search.choose import default_tile
from vdla.compiler.targets.accelerator.search.simulation import Cycles, Simulation, TileMeter
from vdla.compiler.targets.accelerator.search.tile_records import (
    BUNDLED,
    TileRecord,
    TileRecords,
    make_tile,
)
from vdla.compiler.targets.accelerator.search.tile_space import tile_space
from vdla.compiler.targets.accelerator.search.tile_view import TileView
from vdla.compiler.targets.accelerator.search.transfer import TransferData
from vdla.compiler.targets.accelerator.search.workload import Workload
from vdla.isa.config import Config

SEARCHERS = (LEARNED, *UNTAUGHT)


@dataclass(eq=False)
class TileTask(Task[Tile, Cycles, TileRecord]):
    """The search for one workload, and the layers that share it.

    ``default`` is the analytic model's tile; ``transfer`` is shared by the tasks of a search.
    """

    layers: list[str]
    space: Table[Tile]
    meter: TileMeter
    workload: Workload
    default: Tile
    transfer: TransferData

    @cached_property
    def view(self) -> TileView:
        """The tiles as cost models see them."""
        return TileView(self.meter.operator.template, self.space, self.meter.config)

    @property
    def features(self) -> Features:
        """Features of every tile."""
        return self.view.all_features

    @property
    def tile(self) -> Tile:
        """The fastest tile tried; the default until there is one."""
        return self.default if self.best is None else self.space.candidate(self.best)

    @property
    def bound(self) -> float:
        """Cycles that no schedule goes below: those of its multiply-adds or bytes alone."""
        op, config = self.meter.operator, self.meter.config
        return max(op.macs / config.macs_per_cycle, op.dram_bytes / config.bytes_per_cycle)

    def cycles(self, tile: Tile) -> int | None:
        """Cycles of a tile, if it was tried and is legal."""
        point = self.space.point(tile)
        return self.outcomes[point].cycles if point in self.outcomes else None

    def pruned(self, cycles: float) -> list[int]:
        """Points of the space that can't take fewer than ``cycles``, as their floor shows."""
        return np.flatnonzero(self.features.floor >= cycles).tolist()

    def hopeless(self) -> list[int]:
        """Points that can't take fewer cycles than the best one."""
        return self.pruned(self.least)

    def known_good(self, records: Sequence[TileRecord]) -> list[int]:
        """Points known without searching: the default, the bundled one, the records' best; for a
        board, the best by its own cycles and the best by the simulator's."""
        template, threads = self.meter.operator.template, self.workload.vthreads
        chosen, boards = (BUNDLED, TileRecords(lambda: records)), (self.workload.board, "")
        sources = (each.on(board) for each in chosen for board in boards)
        best = (each.tile(template, self.meter.config, threads) for each in sources)
        points = (self.space.point(tile) for tile in (self.default, *best) if tile is not None)
        return list(dict.fromkeys(point for point in points if point is not None))

    def effort(self, point: int) -> float:
        """The commands of a tile's program, by which compiling and simulating it take longest."""
        column = self.features.names.index("commands")
        return float(self.features.values[point, column])

    def searcher(self, options: TuneOptions, records: Sequence[TileRecord]) -> Searcher:
        """A searcher over the tiles; the learned one starts from measurements of its kind."""
        if options.searcher != LEARNED:
            return UNTAUGHT[options.searcher](self.space, options.seed)
        self.transfer.add(records)
        groups = self.transfer.groups(self.workload)
        model = options.cost_model.over(self.view, options.seed, groups)
        return ModelSearcher(self.space, options.seed, self.features.floor, model)

    def record(self, candidate: Tile, outcome: Cycles) -> TileRecord:
        """The record of what became of a tile, just now."""
        return TileRecord.of(self.workload, candidate, outcome)

    def recall(self, record: TileRecord) -> tuple[Tile, Cycles] | None:
        """The tile of a record of this workload under today's sources, with its outcome."""
        tile = make_tile(record) if record.key == self.workload and record.fresh else None
        return None if tile is None else (tile, record.outcome)


def tile_tasks(
    operators: Sequence[tuple[str, Operator]],
    config: Config,
    vthreads: Sequence[int],
    meter_of: Callable[[Operator, Config], TileMeter] = Simulation,
) -> list[TileTask]:
    """The distinct workloads of named layers; fewer threads where the work can't be shared out.

    A user's operator has the user's schedule, and nothing to search for. ``meter_of`` gives what
    measures the tiles of an operator.
    """
    tasks: dict[Workload, TileTask] = {}
    transfer = TransferData()
    for name, op in operators:
        if not op.template.TUNED:
            continue
        for wanted in vthreads:
            default = default_tile(op.template, config, wanted, None)
            meter = meter_of(op, config)
            workload = Workload.of(op.template, config, default.vthreads, meter.board)
            if workload not in tasks:
                space = tile_space(op.template, config, default.vthreads)
                tasks[workload] = TileTask([], space, meter, workload, default, transfer)
            if name not in tasks[workload].layers:
                tasks[workload].layers.append(name)
    return list(tasks.values())
