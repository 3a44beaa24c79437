"""The command that searches schedules, for the accelerator: ``tune``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from vdla.api import tuning
from vdla.commands.output import log, table
from vdla.commands.tuning import Tuning, and_more
from vdla.compiler.search.records import Log
from vdla.compiler.search.searchers import LEARNED
from vdla.compiler.targets.accelerator.search.tile_records import TileRecord
from vdla.compiler.targets.accelerator.search.tile_task import TileTask
from vdla.isa.config import Config
from vdla.isa.identity import isa_hash, other_isa
from vdla.options import Tune


def tune(model: str, options: Tune, exported: Path | None, json: bool) -> None:
    """Searches, prints what was found per distinct layer, and exports the best records."""
    _TileTuning(model, options, TileRecord).run(exported, json)


class _TileTuning(Tuning[TileTask, TileRecord]):
    """The search for the accelerator's layers."""

    NOUN: ClassVar[str] = "workloads"

    @cached_property
    def config(self) -> Config:
        """The machine that is searched for."""
        return tuning.machine(self.options)

    def tasks(self) -> list[TileTask]:
        """The distinct layers, or one of them."""
        how = replace(self.options, config=self.config, settings=(), report=log.print)
        return tuning.tile_tasks(self.model, how)

    def tell_resumed(self, opened: Log[TileRecord]) -> None:
        """Says what of the log doesn't count."""
        path, records = opened.path, opened.records
        foreign = [record.isa for record in records if not record.usable]
        stale = sum(not record.fresh for record in records) - len(foreign)
        machine = (self.config.hash, self.config.memory)
        board = self.options.board or ""
        elsewhere = sum(record.workload.board != board for record in records)
        configs = (record.workload.config for record in records)
        other = sum((each.hash, each.memory) != machine for each in configs)
        if foreign:
            text = other_isa(isa_hash(), foreign[-1], "tuned", "they don't count")
            log.print(f"{path}: {len(foreign)} records, {text}")
        if stale:
            log.print(f"{path}: {stale} records are of other sources and don't count as tried")
        if other:
            log.print(f"{path}: {other} records are of other configs and only teach the model")
        if elsewhere:
            where = "the simulator or other boards" if board else "boards"
            log.print(f"{path}: {elsewhere} records are of {where} and only teach the model")

    def to_json(self, tasks: Sequence[TileTask], seconds: float) -> dict[str, object]:
        """Results for programs."""
        return {
            "config": self.config.name,
            "board": self.options.board,
            "memory": self.config.to_dict()["memory"],
            "log": str(self.options.log),
            "searcher": self.options.searcher,
            "cost_model": self.options.cost_model if self.options.searcher == LEARNED else None,
            "seconds": seconds,
            "layers": [
                {
                    "layers": task.layers,
                    "vthreads": task.workload.vthreads,
                    "space": len(task.space),
                    "ruled_out": task.ruled_out,
                    "trials": task.trials,
                    "resumed": task.resumed,
                    "illegal": task.counts["illegal"],
                    "failed": task.counts["crash"] + task.counts["timeout"],
                    "bound_cycles": task.bound,
                    "default_cycles": task.cycles(task.default),
                    "best_cycles": task.cycles(task.tile),
                    "tile": vars(task.tile),
                }
                for task in tasks
            ],
        }

    def show(self, tasks: Sequence[TileTask]) -> None:
        """Prints what was found as a table; the schedules themselves are in the log."""
        columns = ["layer", "threads", "space", "ruled out", "tried", "bound"]
        columns += ["default", "best", "gain"]
        rows = []
        for task in tasks:
            default, best = task.cycles(task.default), task.cycles(task.tile)
            gain = f"{100 * (default / best - 1):.1f} %" if default and best else "–"
            rows.append(
                (
                    and_more(task),
                    task.workload.vthreads,
                    f"{len(task.space):,}",
                    f"{task.ruled_out:,}",
                    task.trials,
                    f"{task.bound:,.0f}",
                    f"{default:,}" if default else "–",
                    f"{best:,}" if best else "–",
                    gain,
                )
            )
        board = self.options.board
        where = f"board {board}" if board else f"memory {self.config.memory.name}"
        table(f"tuned on {self.config.name}, {where}; cycles", columns, rows)

    def tell_failures(self, tasks: Sequence[TileTask]) -> None:
        """Says which layers lost candidates, and by what."""
        for task in tasks:
            bad = {s: n for s, n in task.counts.items() if s in ("crash", "timeout")}
            if bad:
                lost = ", ".join(f"{n} by {status}" for status, n in sorted(bad.items()))
                log.print(f"{task.layers[0]}: lost candidates, {lost}; the log says why")
