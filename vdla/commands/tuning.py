"""The command that searches schedules: tune."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vdla import api
from vdla.commands import functions
from vdla.commands.output import check_folder, console, log, print_json, progress, table
from vdla.compiler.tune.records import Log, export, load
from vdla.compiler.tune.tuner import Task
from vdla.isa.config import Config
from vdla.isa.identity import isa_hash, other_isa
from vdla.lookup import resolve
from vdla.options import Tune


def tune(model: str, options: Tune, exported: Path | None, json: bool) -> None:
    """Searches, prints what was found per distinct layer, and exports the best records."""
    api.check_target(options)
    if options.target == api.CPU:
        functions.tune(model, options, exported, json)
        return
    path = Path(options.log)
    check_folder(path)
    before = []
    if exported is not None:
        check_folder(exported)
        before = load(exported) if exported.exists() else []
    chosen = resolve(options.config, options.settings)
    begun = time.monotonic()
    tasks = api.tuning_tasks(model, options)
    with Log(path) as records, progress() as update:
        _tell_resumed(records, chosen)
        api.search(tasks, replace(options, progress=update), records)
        everything = list(records.records)
    seconds = time.monotonic() - begun
    if json:
        print_json(_json(chosen, options, tasks, seconds))
    else:
        _print(chosen, tasks, seconds)
    _tell_failures(tasks)
    if exported is not None:
        count = export([*before, *everything], exported)
        log.print(f"wrote {exported}: the best of {count} workloads")


def _tell_resumed(records: Log, config: Config) -> None:
    """What of the log counts, and what doesn't."""
    if records.cut:
        log.print(f"{records.path}: removed {records.cut} bytes of a record that was cut off")
    foreign = [record.isa for record in records.records if record.isa != isa_hash()]
    stale = sum(not record.fresh for record in records.records) - len(foreign)
    machine = (config.hash, config.memory)
    found = (record.workload.config for record in records.records)
    other = sum((each.hash, each.memory) != machine for each in found)
    if foreign:
        text = other_isa(isa_hash(), foreign[-1], "tuned", "they don't count")
        log.print(f"{records.path}: {len(foreign)} records, {text}")
    if stale:
        log.print(f"{records.path}: {stale} records are of other sources and don't count as tried")
    if other:
        log.print(f"{records.path}: {other} records are of other configs and only teach the model")


def _tell_failures(tasks: Sequence[Task]) -> None:
    for task in tasks:
        bad = {s: n for s, n in task.counts.items() if s in ("crash", "timeout")}
        if bad:
            found = ", ".join(f"{n} by {status}" for status, n in bad.items())
            log.print(f"{task.layers[0]}: lost candidates, {found}; the log says why")


def _json(config: Config, options: Tune, tasks: Sequence[Task], seconds: float) -> dict[str, Any]:
    memory = config.memory
    return {
        "config": config.name,
        "memory": {"latency": memory.latency, "bytes_per_cycle": memory.bytes_per_cycle},
        "log": str(options.log),
        "searcher": options.searcher,
        "seconds": seconds,
        "layers": [
            {
                "layers": task.layers,
                "vthreads": task.workload.vthreads,
                "space": len(task.space),
                "ruled_out": task.ruled_out,
                "trials": task.trials,
                "resumed": task.resumed,
                "illegal": task.counts.get("illegal", 0),
                "failed": task.counts.get("crash", 0) + task.counts.get("timeout", 0),
                "bound_cycles": task.bound,
                "default_cycles": task.cycles(task.default),
                "best_cycles": task.cycles(task.best),
                "tile": vars(task.best),
            }
            for task in tasks
        ],
    }


def _print(config: Config, tasks: Sequence[Task], seconds: float) -> None:
    """The table; the schedules themselves are in the log and in ``--json``."""
    columns = ["layer", "threads", "space", "ruled out", "tried", "bound"]
    columns += ["default", "best", "gain"]
    rows = []
    for task in tasks:
        default, best = task.cycles(task.default), task.cycles(task.best)
        gain = f"{100 * (default / best - 1):.1f} %" if default and best else "–"
        more = f" and {len(task.layers) - 1} more" if len(task.layers) > 1 else ""
        rows.append(
            (
                f"{task.layers[0]}{more}",
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
    table(f"tuned on {config.name}, memory {config.memory.name}; cycles", columns, rows)
    tried = sum(task.trials - task.resumed for task in tasks)
    console.print(f"{tried} candidates measured in {seconds:.0f} s")
