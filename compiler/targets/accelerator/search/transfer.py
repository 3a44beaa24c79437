"""Transfer of all workloads' measurements to a search for another workload."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from vdla.compiler.search.cost_model import ShownGroup
from vdla.compiler.search.table import Table
from vdla.compiler.targets.accelerator.operators.template import Tile
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord, make_tile
from vdla.compiler.targets.accelerator.search.tile_view import TileView
from vdla.compiler.targets.accelerator.search.workload import Workload
from vdla.isa.parameters import ConfigError


class TransferData:
    """Measurements of workloads, as groups for cost models; ``tables`` has tiles and cycles."""

    def __init__(self) -> None:
        self.tables: dict[Workload, ShownGroup] = {}

    def add(self, records: Sequence[TileRecord]) -> None:
        """Takes in the records of the workloads that it doesn't know yet."""
        new: dict[Workload, dict[Tile, float]] = {}
        for record in records:
            tile = make_tile(record) if record.usable else None
            if record.workload not in self.tables and tile is not None:
                cost = inf if record.cycles is None else float(record.cycles)
                new.setdefault(record.workload, {})[tile] = cost
        for workload, costs in new.items():
            tiles = sorted(costs, key=repr)  # in no order of who was measured first
            try:
                seen = TileView(workload.like(), Table.of(tiles), workload.config)
                _ = seen.all_features
            except (ConfigError, KeyError, TypeError, ValueError, ArithmeticError):
                continue  # of a compiler with other templates, or of no layer at all
            self.tables[workload] = (seen, np.array([costs[tile] for tile in tiles]))

    def groups(self, workload: Workload) -> list[ShownGroup]:
        """The measured tiles of every other workload of this kind, with their cycles."""
        return [
            (seen, cycles)
            for other, (seen, cycles) in self.tables.items()
            if other != workload and other.kind == workload.kind and np.isfinite(cycles).any()
        ]
