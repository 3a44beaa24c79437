"""The example package as an installation lays it out, without pip."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

DOT8 = Path(__file__).parents[2] / "examples" / "dot8"


def lay_out(folder: Path) -> Path:
    """Puts dot8's modules and metadata into a folder, which then belongs on ``sys.path``."""
    project = tomllib.loads((DOT8 / "pyproject.toml").read_text())["project"]
    shutil.copytree(DOT8 / "vdla_dot8", folder / "vdla_dot8")
    info = folder / f"vdla_dot8-{project['version']}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    info.joinpath("entry_points.txt").write_text("\n".join(lines))
    return folder
