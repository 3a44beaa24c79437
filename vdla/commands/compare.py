"""The command that compares virtual threads, at one memory latency or at several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla import api
from vdla.analysis import hiding
from vdla.analysis.comparison import Comparison, Layer
from vdla.analysis.plots import save_plots
from vdla.analysis.report import report_page
from vdla.analysis.rows import csv_text
from vdla.analysis.same_schedule import SameSchedule
from vdla.analysis.sweep import Sweep
from vdla.commands.output import (
    check_folder,
    check_output_folder,
    console,
    log,
    print_energy_table,
    print_json,
    progress,
    say,
    table,
    write_text,
)
from vdla.compiler.placement import processor_remark
from vdla.names.configs import resolve_on
from vdla.options import Compare, CompareOutput
from vdla.options.spelling import UsageError
from vdla.sim.trace import write_trace
from vdla.support.names import path_part


def compare(model: str, options: Compare, output: CompareOutput, json: bool) -> None:
    """Prints the comparison or the sweep; writes its plots, one timeline, the page, the CSV."""
    config_name = options.one
    config = resolve_on(options.board, options.one, options.settings)
    options = replace(options, config=config, board=None, settings=())
    check_output_folder(output.out)
    if output.report is not None:
        check_folder(output.report, model, config_name, options.records, made=output.out)
    if output.csv is not None:
        check_folder(output.csv, model, config_name, options.records, made=output.out)
    result, sweep = _measure(model, options)
    if not result.layers:
        reasons = "; ".join(f"{n}: {r}" for n, r in result.host.items())
        raise UsageError(f"{model}: expected a layer for the accelerator, found none ({reasons})")
    traced = _traced(result, output.trace_layer)
    name = Path(model).stem
    stem = f"{name}-{result.config.name}"
    one = _one_schedule(model, options) if output.same_schedule else None
    files = save_plots(result, output.out, stem, sweep, one, output.formats)
    files.append(_trace_one(result, traced, output.out, stem))
    if output.report is not None:
        write_text(output.report, report_page(name, result, traced, sweep, one))
        files.append(output.report)
    if output.csv is not None:
        write_text(output.csv, csv_text((sweep or result).rows()))
        files.append(output.csv)
    if json:
        print_json((sweep or result).to_json() | ({"same_schedule": one.to_json()} if one else {}))
    else:
        _print_comparison(result)
        _print_work(result)
        if sweep:
            _print_sweep(sweep)
        if one:
            _print_same_schedule(one)
    for layer, reason in result.host.items():
        log.print(f"{layer} stays on the host: {reason}")
    for file in files:
        log.print(f"wrote {file}")


def _measure(model: str, options: Compare) -> tuple[Comparison, Sweep | None]:
    with progress() as update:
        options = replace(options, progress=update)
        if not options.latencies:
            return api.compare(model, options), None
        result = api.sweep(model, options)
        return result.base, result


def _one_schedule(model: str, options: Compare) -> SameSchedule:
    with progress() as update:
        return api.same_schedule(model, replace(options, latencies=(), progress=update))


def _print_comparison(comparison: Comparison) -> None:
    threads = comparison.vthreads
    columns = ["layer", "MMAC", "bound", "by", *(f"cycles {v}" for v in threads)]
    columns += [f"utilization {v}" for v in threads]
    energies = {v: energy for v in threads if (energy := comparison.energy(v))}
    columns += [f"µJ {v}" for v in energies]
    rows = []
    for layer in comparison.layers:
        rows.append(
            [layer.name, f"{layer.macs / 1e6:.1f}", f"{layer.bound_cycles:,.0f}", layer.bound_by]
            + [f"{layer.measured[v].cycles:,}" for v in threads]
            + [f"{100 * layer.measured[v].utilization:.1f} %" for v in threads]
            + [f"{layers[layer.name].total_uj:,.1f}" for layers in energies.values()]
        )
    bound = sum(layer.bound_cycles for layer in comparison.layers)
    rows.append(
        ["total", f"{comparison.macs / 1e6:.1f}", f"{bound:,.0f}", ""]
        + [f"{comparison.cycles(v):,}" for v in threads]
        + [f"{100 * comparison.utilization(v):.1f} %" for v in threads]
        + [f"{sum(e.total_uj for e in layers.values()):,.1f}" for layers in energies.values()]
    )
    title = f"latency hiding on {comparison.config.name}, memory {comparison.config.memory.name}"
    table(f"{title}; columns by virtual threads", columns, rows)
    if comparison.energy_table is not None:
        every = [energy for layers in energies.values() for energy in layers.values()]
        print_energy_table(comparison.energy_table, every)
    if remark := processor_remark(comparison.placement):
        console.print(remark)
    for v in threads[-1:]:
        if whole := comparison.end_to_end(v):
            say(whole.text)


def _print_work(comparison: Comparison) -> None:
    """Prints the share of each other engine's work that GEMM hides."""
    threads = comparison.vthreads
    names = [engine.name for engine in hiding.others(comparison.config)]
    columns = ["layer", *(f"{name} {v}" for name in names for v in threads)]
    works = [(n.name, {v: n.measured[v].work for v in threads}) for n in comparison.layers]
    works.append(("total", {v: comparison.work(v) for v in threads}))
    rows = [[row, *(by[v][name].text for name in names for v in threads)] for row, by in works]
    table("share of each engine's work beside GEMM; columns by virtual threads", columns, rows)


def _print_sweep(sweep: Sweep) -> None:
    """A table per number of virtual threads: cycles of each layer at each latency."""
    points = sweep.points
    columns = ["layer", *(str(point.latency) for point in points)]
    for v in sweep.vthreads:
        rows = [
            [layer.name, *(f"{p.layers[i]['cycles'][str(v)]:,}" for p in points)]
            for i, layer in enumerate(sweep.base.layers)
        ]
        rows.append(["total", *(f"{p.cycles(v):,}" for p in points)])
        rows.append(["utilization", *(f"{100 * p.utilization(v):.1f} %" for p in points)])
        title = f"{v} virtual thread{'s' if v > 1 else ''} on {sweep.config.name}"
        table(f"{title}: cycles by memory latency", columns, rows)


def _print_same_schedule(same: SameSchedule) -> None:
    """Utilization of every layer's one schedule, by what it hides latency with."""
    rows = [
        [layer.name, *(f"{100 * same.layer_utilization(layer, v):.1f} %" for v in same.variants)]
        for layer in same.layers
    ]
    rows.append(["total", *(f"{100 * same.utilization(v):.1f} %" for v in same.variants)])
    rows.append(["cycles", *(f"{same.cycles(v):,}" for v in same.variants)])
    title = f"one schedule on {same.config.name}, that of {same.vthreads} virtual threads"
    table(f"{title}: what hides latency", ["layer", *same.variants], rows)


def _traced(comparison: Comparison, name: str) -> Layer:
    for layer in comparison.layers:
        if name in ("", layer.name):
            return layer
    known = ", ".join(each.name for each in comparison.layers)
    raise UsageError(f"--trace-layer: expected one of {known}, found {name}")


def _trace_one(comparison: Comparison, layer: Layer, out: Path, stem: str) -> Path:
    measured = layer.measured[comparison.vthreads[-1]]
    path = out / f"{stem}-{path_part(layer.name)}.trace.json"
    write_trace(
        measured.run,
        path,
        layers=measured.program.linked.layers,
        stages=measured.program.linked.stages,
    )
    return path
