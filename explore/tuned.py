"""Schedules searched for, for the designs of a front: the level behind the analytic model's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from vdla.compiler.search.records import Log, best
from vdla.compiler.search.searchers import LEARNED
from vdla.compiler.search.tuner import TuneOptions, tune
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.accelerator.search.tile_task import tile_tasks
from vdla.explore.networks import Networks
from vdla.farm.work import JobPool
from vdla.isa.config import Config

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Tuner:
    """Searches tiles for every layer of some networks on a design, ``trials`` for each distinct
    one, from and into a log of tuning records, as ``vdla tune`` does."""

    networks: Networks
    log: Log[TileRecord]
    pool: JobPool
    trials: int
    progress: Progress = lambda what, done, total: None

    def records(self, config: Config) -> list[TileRecord]:
        """The best record of every layer that has one, after the search.

        Raises:
            FarmError: nobody has what a measurement needs.
            OSError: the log can't be written any more; every record before is in it.
        """
        layers = [
            (f"{name}.{op.node.name}", op)
            for name in self.networks.names
            for op, _ in self.networks.layers(name, config)[0]
        ]
        tasks = tile_tasks(layers, config, (self.networks.vthreads,))
        searcher = LEARNED if find_spec("xgboost") else "genetic"
        options = TuneOptions(self.trials, searcher, progress=self.progress)
        tune(tasks, self.log, options, self.pool)
        return self.known(config)

    def known(self, config: Config) -> list[TileRecord]:
        """The best record of every layer on a design that the log has one of; no search."""
        machine = (config.hash, config.memory)
        fresh = (record for record in self.log.records if record.fresh)
        own = (r for r in fresh if (r.workload.config.hash, r.workload.config.memory) == machine)
        return list(best(own).values())
