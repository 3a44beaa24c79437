"""The command that searches for designs: ``explore``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from vdla.analysis.report import designs_page
from vdla.api import exploration
from vdla.commands.output import (
    check_folder,
    check_output_folder,
    console,
    log,
    print_json,
    progress,
    table,
    write_text,
)
from vdla.explore.evaluate import AREA_OBJECTIVES, ENERGY, MS, Evaluation, number
from vdla.explore.export import export
from vdla.explore.search import Exploration
from vdla.isa.clock import clock_text
from vdla.options import Explore, ExploreOutput


def explore(models: Sequence[str], options: Explore, output: ExploreOutput, json: bool) -> None:
    """Searches, and prints the front: as a table, or for programs; exports a design of it."""
    if options.log is not None:
        check_folder(Path(options.log))
    if output.page is not None:
        check_folder(output.page, *models, options.space, options.log)
    if output.export is not None:
        check_output_folder(output.out)
    with progress() as update:
        options = replace(options, progress=update, report=log.print)
        result = exploration.explore_designs(models, options)
    files = [] if output.export is None else export(result, output.export, output.out)
    if output.page is not None:
        write_text(output.page, designs_page(models, result))
    if json:
        print_json(result.to_json())
    else:
        _show(result)
    for level in result.levels:
        for reason, count in level.pruned.items():
            if not count:
                continue
            log.print(f"{level.name}: {count} of {level.seen} designs pruned: {reason}")
    for file in (*files, *([output.page] if output.page else [])):
        log.print(f"wrote {file}")
    if files:
        records = f" --records {files[1]}" if len(files) > 1 else ""
        log.print(f"see it: vdla compare {models[0]} -c {files[0]}{records}")


def _show(result: Exploration) -> None:
    """The front by its first objective, below the baseline."""
    shown = [] if result.baseline.area is None else list(AREA_OBJECTIVES)
    if result.baseline.energy_table is not None:
        shown.append(ENERGY)
    names = list(dict.fromkeys(("cycles", MS, *result.objectives, *shown)))
    rows = [(result.baseline.config.name, *_numbers(result.baseline, names), "")]
    for place, point in enumerate(result.front, start=1):
        each = result.evaluations[point]
        settings = " ".join(result.space.settings(point))
        rows.append((str(place), *_numbers(each, names), settings))
    title = (
        f"designs of space {result.space.name} that none beats in {', '.join(result.objectives)}"
    )
    columns = [f"ms ({result.clocks})" if name == MS else name for name in names]
    table(title, ["design", *columns, "settings"], rows)
    console.print(f"ms are cycles at each design's clock: {_clocks(result)}")
    if table_name := result.baseline.energy_table:
        console.print(f"energy in µJ by {table_name}")
    console.print(f"{len(result.evaluations)} designs simulated in {result.seconds:.0f} s")


def _clocks(result: Exploration) -> str:
    """The clocks of the front and the baseline, in words."""
    base = result.baseline
    every = sorted(each.clock.mhz for each in result.points) or [base.clock.mhz]
    low, high = (clock_text(mhz, result.clocks) for mhz in (every[0], every[-1]))
    front = low if low == high else f"{low} to {high}"
    return f"{front}; {base.config.name} has {base.clock.text}"


def _numbers(each: Evaluation, names: Sequence[str]) -> list[str]:
    values = ((name, number(each.objective(name))) for name in names)
    return ["–" if v is None else f"{v:,.4g}" if n == MS else f"{v:,.7g}" for n, v in values]
