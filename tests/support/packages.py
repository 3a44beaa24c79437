"""An example package as an installation lays it out, without pip."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def lay_out(folder: Path, name: str = "dot8") -> Path:
    """Puts a target's modules and metadata into a folder, which then belongs on ``sys.path``.

    Args:
        folder: an empty folder.
        name: of a folder in ``examples/`` that has a package ``vdla_NAME``.
    """
    project = tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text())["project"]
    shutil.copytree(EXAMPLES / name / f"vdla_{name}", folder / f"vdla_{name}")
    info = folder / f"vdla_{name}-{project['version']}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    info.joinpath("entry_points.txt").write_text("\n".join(lines))
    return folder
