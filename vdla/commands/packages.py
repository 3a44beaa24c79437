"""The command that packages a model for programs without vdla."""

from __future__ import annotations

from dataclasses import replace

from vdla import api
from vdla.commands.output import check_output_folder, print_json, progress, table
from vdla.options import Package


def package(model: str, options: Package, json: bool) -> None:
    """Writes a package's files, and lists them."""
    check_output_folder(options.out)
    with progress() as update:
        made = api.package(model, replace(options, progress=update))
    if json:
        print_json(
            {
                "name": made.name,
                "form": made.form,
                "target": made.target,
                "files": [{"path": str(p), "bytes": p.stat().st_size} for p in made.files],
            }
        )
        return
    rows = [(str(path), f"{path.stat().st_size:,}") for path in made.files]
    table(f"{made.name} for {made.target}, {made.form}", ("file", "bytes"), rows)
