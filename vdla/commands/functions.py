"""The command that searches schedules, for this processor: ``tune --target cpu``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vdla import api
from vdla.commands.output import check_folder, console, log, print_json, progress, table
from vdla.compiler.tune.cpu.records import FunctionLog, export, load
from vdla.compiler.tune.cpu.tuner import FunctionTask, model_ratio
from vdla.options import Tune


def tune(model: str, options: Tune, exported: Path | None, json: bool) -> None:
    """Searches, prints what was found per distinct function, and exports the best records."""
    path = Path(options.log)
    check_folder(path)
    before = []
    if exported is not None:
        check_folder(exported)
        before = load(exported) if exported.exists() else []
    begun = time.monotonic()
    tasks = api.function_tasks(model, options)
    with FunctionLog(path) as records, progress() as update:
        if records.cut:
            log.print(f"{path}: removed {records.cut} bytes of a record that was cut off")
        api.search_functions(tasks, replace(options, progress=update), records)
        everything = list(records.records)
    seconds = time.monotonic() - begun
    if json:
        print_json(_json(options, tasks, seconds))
    else:
        _print(tasks, seconds)
    for task in tasks:
        if lost := task.counts("crash", "timeout"):
            log.print(f"{task.function.layers[0]}: lost {lost} candidates; the log says why")
    if exported is not None:
        count = export([*before, *everything], exported)
        log.print(f"wrote {exported}: the best of {count} functions")


def _json(options: Tune, tasks: Sequence[FunctionTask], seconds: float) -> dict[str, Any]:
    return {
        "target": options.target,
        "strategy": options.strategy,
        "searcher": options.searcher,
        "log": str(options.log),
        "seconds": seconds,
        "ratio": model_ratio(tasks),
        "functions": [
            {
                "layers": task.function.layers,
                "function": task.function.digest,
                "sketches": [sketch.rule for sketch in task.space.sketches],
                "trials": task.trials,
                "resumed": task.resumed,
                "illegal": task.counts("illegal"),
                "failed": task.counts("crash", "timeout"),
                "default_seconds": task.reference if task.counts("ok") else None,
                "ratio": task.ratio,
                "spread": task.spread,
                "rule": task.rule,
            }
            for task in tasks
        ],
    }


def _print(tasks: Sequence[FunctionTask], seconds: float) -> None:
    """The table; the schedules themselves are in the log."""
    columns = ["function", "tried", "illegal", "default", "best / default", "spread", "rule"]
    rows = []
    for task in tasks:
        more = f" and {task.weight - 1} more" if task.weight > 1 else ""
        rows.append(
            (
                f"{task.function.layers[0]}{more}",
                task.trials,
                task.counts("illegal"),
                f"{1e3 * task.reference:.3f} ms" if task.counts("ok") else "–",
                f"{task.ratio:.3f}",
                f"{100 * task.spread:.1f} %" if task.spread is not None else "–",
                task.rule or "default",
            )
        )
    table("tuned on this processor; times over the default schedule's", columns, rows)
    tried = sum(task.trials - task.resumed for task in tasks)
    console.print(f"{tried} candidates measured in {seconds:.0f} s; all functions together take")
    console.print(f"{model_ratio(tasks):.3f} of the default schedules' time")
