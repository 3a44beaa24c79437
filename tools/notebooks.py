"""Executes the notebooks of docs/notebooks and writes them back with their outputs.

    python tools/notebooks.py [NAME…] [--check]

With ``--check`` nothing is written, and the exit code is 1 where a notebook fails or prints other
text than it holds. Pictures are not compared: another version of matplotlib draws others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"
TIMEOUT = 300  # seconds, of a cell


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook after all of its cells, each run in an empty folder.

    Raises:
        CellExecutionError: a cell fails.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=TIMEOUT, resources=resources).execute()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"  # nbformat's own are random
        cell.metadata.clear()
    notebook.metadata.pop("widgets", None)
    return notebook


def texts(notebook: nbformat.NotebookNode) -> list[str]:
    """The text and the HTML of each output, in order."""
    outputs = [each for cell in notebook.cells for each in cell.get("outputs", ())]
    return [
        "".join(each.get("text", "")) or _shown(each.get("data", {}))
        for each in outputs
        if each.get("name") != "stderr"
    ]


def _shown(data: dict[str, str]) -> str:
    """The text of a value that a cell ends with; nothing for a picture."""
    return "" if "image/png" in data else "".join(data.get("text/html", data.get("text/plain", "")))


def main() -> int:
    """Writes the notebooks, or says which of them aren't current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    paths = sorted(FOLDER.glob("*.ipynb"))
    status = 0
    for path in [p for p in paths if p.stem in options.names or not options.names]:
        try:
            notebook = executed(path)
        except CellExecutionError as error:
            print(f"{path.name}: {error}")
            return 1
        if not options.check:
            nbformat.write(notebook, path)
            print(f"wrote {path.name}")
        elif texts(notebook) != texts(nbformat.read(path, as_version=4)):
            print(f"{path.name}: expected its outputs; run python tools/notebooks.py {path.stem}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
