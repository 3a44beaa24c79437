"""The command that lays several configs side by side, for one network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from vdla import api
from vdla.analysis.report import side_by_side_page
from vdla.analysis.rows import csv_text
from vdla.analysis.side_by_side import SideBySide
from vdla.commands.output import (
    check_folder,
    console,
    log,
    print_json,
    progress,
    table,
    write_text,
)
from vdla.options import Compare, CompareOutput
from vdla.options.spelling import UsageError, given

WRITTEN = ("--report", "--csv")  # what is written of several configs


def side_by_side(model: str, options: Compare, output: CompareOutput, json: bool) -> None:
    """Prints time and ratio of each layer on each config; writes the page and the CSV."""
    refused = [how.name for how in given(output) if how.name not in WRITTEN]
    for name in (*refused, *(["--latency"] if options.latencies else ())):
        raise UsageError(f"{name}: expected one config, found {len(options.several)}")
    files = [path for path in (output.report, output.csv) if path is not None]
    for path in files:
        check_folder(path, model, *options.several, options.records)
    with progress() as update:
        designs = api.side_by_side(model, replace(options, progress=update))
    if not designs.layers:
        reasons = "; ".join(f"{n}: {r}" for n, r in designs.comparisons[0].host.items())
        raise UsageError(f"{model}: expected a layer for the accelerator, found none ({reasons})")
    if output.report is not None:
        write_text(output.report, side_by_side_page(Path(model).stem, designs))
    if output.csv is not None:
        write_text(output.csv, csv_text(designs.rows()))
    if json:
        print_json(designs.to_json())
    else:
        _print(model, designs)
    for file in files:
        log.print(f"wrote {file}")


def _print(model: str, designs: SideBySide) -> None:
    """Prints what differs in the configs, then the layers, then the result in a line."""
    first, *others = designs.labels
    rows = [[key, *map(str, values)] for key, values in designs.differences.items()]
    if rows:
        table("differences between the configs", ["parameter", *designs.labels], rows)
    columns = ["layer", *(f"{label}, ms" for label in designs.labels)]
    columns += [f"{label} / {first}" for label in others]
    total = "total" if designs.common == designs.layers else "total of common layers"
    rows = [[name, *designs.cells(name)] for name in designs.layers]
    rows.append([total, *designs.cells(None)])
    table(f"{model}, layer by layer", columns, rows)
    console.print(f"ms of {designs.clocks}")
    for place, label in enumerate(designs.labels):
        if whole := designs.end_to_end(place):
            console.print(f"{label}: {whole.text}")
    for label, each in zip(designs.labels, designs.comparisons, strict=True):
        if each.energy_table and (energies := each.energy(each.vthreads[-1])):
            microjoules = sum(energy.total_uj for energy in energies.values())
            console.print(f"{label}: {microjoules:,.1f} µJ, energy by {each.energy_table.name}")
    for place, label in enumerate(others, 1):
        if (ratio := designs.ratio(place)) is not None:
            console.print(f"{label} takes {ratio:.3f} of {first}'s time for {_layers(designs)}")


def _layers(designs: SideBySide) -> str:
    """The layers that ratios are of, in words."""
    count = len(designs.common)
    kind = "layers" if designs.common == designs.layers else "layers that all have"
    return f"{count} {kind if count > 1 else kind.replace('layers', 'layer')}"
