"""The command that says where the time of a run goes."""

from __future__ import annotations

from dataclasses import asdict, replace

from vdla import api
from vdla.commands.inputs import with_files
from vdla.commands.output import console, print_json, progress, table
from vdla.options import Run, RunFiles


def profile(model: str, options: Run, files: RunFiles, json: bool) -> None:
    """Prints where the time goes."""
    with progress() as update:
        result = api.profile(model, replace(with_files(options, files), progress=update))
    if json:
        own = asdict(result)
        print_json({name: own[name] for name in own if name != "worker" or result.worker})
        return
    rows = [
        (
            step.title,
            step.op,
            "" if step.seconds is None else f"{1e3 * step.seconds:.3f}",
            "" if step.share is None else f"{100 * step.share:.1f} %",
            "" if step.cycles is None else f"{step.cycles:,}",
            "" if step.operations is None else f"{step.operations / 1e6:.2f}",
            "" if step.gops is None else f"{step.gops:.1f}",
            "" if step.of_peak is None else f"{100 * step.of_peak:.0f} %",
        )
        for step in result.steps
    ]
    columns = ("step", "operator", "ms", "share", "cycles", "Mop", "Gop/s", "of peak")
    where = f" of {result.worker}" if result.worker else ""
    table(f"time on {result.threads} threads{where}, the shortest of some runs", columns, rows)
    most = ", ".join(f"{n:.0f} Gop/s of {dtype}" for dtype, n in result.peaks.items() if n)
    seconds = sum(s.seconds or 0.0 for s in result.steps)
    console.print(f"{1e3 * seconds:.3f} ms; the peak is {most}")
    if any(step.seconds is None for step in result.steps):
        console.print(
            "the accelerator is simulated: its steps have cycles, and no share of the time"
        )
