"""The command that says why operators stay on the host, and what that costs."""

from __future__ import annotations

from dataclasses import asdict, replace

from vdla import api
from vdla.commands.inputs import with_files
from vdla.commands.output import console, print_json, progress, table
from vdla.options import Run, RunFiles


def explain(model: str, options: Run, files: RunFiles, json: bool) -> None:
    """Prints causes with their operators, times and remedies."""
    with progress() as update:
        result = api.explain(model, replace(with_files(options, files), progress=update))
    if json:
        print_json(asdict(result))
        return
    rows = [
        (
            cause.name,
            ", ".join(f"{count} {op}" for op, count in cause.operators.items()),
            str(cause.between),
            f"{1e3 * cause.seconds:.3f}",
            f"{cause.cycles:,}",
            cause.remedy or "–",
        )
        for cause in result.causes
    ]
    columns = ("cause", "operators", "between", "ms", "cycles", "what removes it")
    table("what stays on the host, by cause", columns, rows)
    for cause in result.causes:
        console.print(f"{cause.name}, for example: {cause.example}", markup=False, soft_wrap=True)
    count = sum(cause.between for cause in result.causes)
    console.print(
        f"{count} operators of the host between the accelerator's first and last; the accelerator "
        f"itself takes {result.cycles:,} cycles {result.at_clock}",
        soft_wrap=True,
    )
