"""Latency hiding: ``vdla.compare``, ``vdla.sweep``, ``vdla.same_schedule``; and designs beside
each other: ``vdla.side_by_side``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla.analysis.comparison import Comparison, compare_models, find_workload
from vdla.analysis.published import published
from vdla.analysis.same_schedule import SameSchedule
from vdla.analysis.same_schedule import same_schedule as compare_hiding
from vdla.analysis.side_by_side import SideBySide
from vdla.analysis.sweep import Sweep, sweep_latency
from vdla.api.host import times_of
from vdla.compiler.targets.accelerator.search.tile_records import TileRecords
from vdla.isa.config import Config
from vdla.names.configs import energy_table, resolve_on
from vdla.names.models import model_files
from vdla.names.schedules import tuned_tiles
from vdla.options import Compare
from vdla.options.spelling import UsageError, takes


@takes(Compare)
def compare(model: str | Path, options: Compare) -> Comparison:
    """Latency hiding per layer of a model or of ``resnet18-convs``.

    Raises:
        UsageError: several latencies, for which there is ``sweep``.
    """
    _at_one_latency(options)
    chosen, tuned = _compared(options)
    table, files = energy_table(options.energy), model_files(model)
    times = times_of(files, options.host, chosen, options.shapes)
    result = compare_models(
        files, chosen, options.vthreads, options.progress, tuned, options.shapes
    )
    known = published(model, chosen)
    return replace(result, published=known, energy_table=table, host_time=times)


def _compared(options: Compare) -> tuple[Config, TileRecords | None]:
    """The config that is compared on, and tuned schedules."""
    config = resolve_on(options.board, options.one, options.settings)
    return config, tuned_tiles(options.records, options.board)


@takes(Compare)
def side_by_side(model: str | Path, options: Compare) -> SideBySide:
    """Compares several configs, the first with each other one, layer by layer of a model.

    Raises:
        UsageError: fewer than two configs; or latencies, for which there is ``sweep``.
        ConfigError: a config doesn't exist or describes no machine.
    """
    _at_one_latency(options)
    if not options.several:
        raise UsageError("--config: expected two configs or more to lay side by side, found one")
    return SideBySide([compare(model, replace(options, config=c)) for c in options.several])


@takes(Compare)
def sweep(model: str | Path, options: Compare) -> Sweep:
    """Latency hiding as memory gets slower: ``compare`` once for each of ``latencies``, in cycles.

    Raises:
        UsageError: no latencies.
    """
    if not options.latencies:
        raise UsageError("--latency: expected some latencies, found none")
    chosen, tuned = _compared(options)
    table, files = energy_table(options.energy), model_files(model)
    times, known = times_of(files, options.host, chosen, options.shapes), published(model, chosen)
    result = sweep_latency(
        files, chosen, options.latencies, options.vthreads, options.progress, tuned, options.shapes
    )
    base = replace(result.base, published=known, energy_table=table, host_time=times)
    return replace(result, base=base)


@takes(Compare)
def same_schedule(model: str | Path, options: Compare) -> SameSchedule:
    """Each layer's best schedule for the most virtual threads: as it is, and hiding less.

    Raises:
        UsageError: several latencies, for which there is ``sweep``.
    """
    _at_one_latency(options)
    chosen, tuned = _compared(options)
    work = find_workload(model_files(model), chosen, options.shapes)
    return compare_hiding(work, chosen, max(options.vthreads), options.progress, tuned)


def _at_one_latency(options: Compare) -> None:
    if options.latencies:
        raise UsageError("--latency: expected vdla.sweep for memory latencies, found another")
