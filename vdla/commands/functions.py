"""The command that searches schedules of functions: ``tune`` with a target but the accelerator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from vdla.api import tuning
from vdla.commands.output import log, table
from vdla.commands.tuning import Tuning, and_more
from vdla.compiler.search.searchers import LEARNED
from vdla.compiler.targets.search.function_records import FunctionRecord
from vdla.compiler.targets.search.function_task import FunctionTask, model_ratio
from vdla.options import Tune


def tune(model: str, options: Tune, exported: Path | None, json: bool) -> None:
    """Searches, prints what was found per distinct function, and exports the best records."""
    _FunctionTuning(model, options, FunctionRecord).run(exported, json)


class _FunctionTuning(Tuning[FunctionTask, FunctionRecord]):
    """The search for a model's functions."""

    NOUN: ClassVar[str] = "functions"

    def tasks(self) -> list[FunctionTask]:
        """The distinct functions, or that of one layer."""
        return tuning.function_tasks(self.model, self.options)

    def to_json(self, tasks: Sequence[FunctionTask], seconds: float) -> dict[str, object]:
        """Results for programs."""
        return {
            "target": self.options.target,
            "strategy": self.options.strategy,
            "searcher": self.options.searcher,
            "cost_model": self.options.cost_model if self.options.searcher == LEARNED else None,
            "log": str(self.options.log),
            "seconds": seconds,
            "ratio": model_ratio(tasks),
            "functions": [
                {
                    "layers": task.layers,
                    "function": task.function.digest,
                    "sketches": [sketch.rule for sketch in task.space.sketches],
                    "trials": task.trials,
                    "resumed": task.resumed,
                    "illegal": task.counts["illegal"],
                    "failed": task.counts["crash"] + task.counts["timeout"],
                    "default_seconds": task.reference if task.counts["ok"] else None,
                    "ratio": task.ratio,
                    "spread": task.spread,
                    "rule": task.rule,
                }
                for task in tasks
            ],
        }

    def show(self, tasks: Sequence[FunctionTask]) -> None:
        """Prints what was found as a table; the schedules themselves are in the log."""
        columns = ["function", "tried", "illegal", "default", "best / default", "spread", "rule"]
        rows = [
            (
                and_more(task),
                task.trials,
                task.counts["illegal"],
                f"{1e3 * task.reference:.3f} ms" if task.counts["ok"] else "–",
                f"{task.ratio:.3f}",
                f"{100 * task.spread:.1f} %" if task.spread is not None else "–",
                task.rule or "default",
            )
            for task in tasks
        ]
        title = f"tuned on this {self.options.target}; times over the default schedule's"
        table(title, columns, rows)

    def summary(self, tasks: Sequence[FunctionTask]) -> str:
        """Speed-up of all functions together."""
        ratio = model_ratio(tasks)
        return f"; all functions together take {ratio:.3f} of the default schedules' time"

    def tell_failures(self, tasks: Sequence[FunctionTask]) -> None:
        """Says which functions lost candidates."""
        for task in tasks:
            if lost := task.counts["crash"] + task.counts["timeout"]:
                log.print(f"{task.layers[0]}: lost {lost} candidates; the log says why")
