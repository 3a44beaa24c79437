"""Documents whose diffs are followed: a copy of the sources, the diffs applied, commands run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("support", "farm", "isa", "sim", "hw", "compiler", "runtime", "boards", "explore")
SKIPPED = shutil.ignore_patterns("__pycache__")
LINKED = shutil.ignore_patterns("__pycache__", *ROOMS)  # a copy's own package has links to them


def diffs(text: str) -> list[str]:
    """The diffs of a document, or of a part of it, each as a reader copies it."""
    return re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def copy_sources(folder: Path) -> Path:
    """The sources in ``folder``, where ``vdla`` can be imported from ``import``."""
    for name in (*ROOMS, "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=SKIPPED)
    shutil.copytree(ROOT / "vdla", folder / "vdla", ignore=LINKED)
    shutil.copy(ROOT / "pyproject.toml", folder)  # pytest's options
    package = folder / "import" / "vdla"
    package.mkdir(parents=True)
    for part in (*(folder / room for room in ROOMS), *(folder / "vdla").iterdir()):
        (package / part.name).symlink_to(part)
    return folder


def apply(folder: Path, diffs: Sequence[str], *options: str) -> subprocess.CompletedProcess[bytes]:
    """``git apply`` of one diff after another, which knows nothing of the repository that the copy
    may lie in; the first that doesn't apply, else all of them."""
    command, said = ["git", "apply", *options], b""
    for diff in diffs:
        done = subprocess.run(
            command,
            cwd=folder,
            input=diff.encode(),
            env={**os.environ, "GIT_DIR": os.devnull},
            capture_output=True,
        )
        if done.returncode:
            return done
        said += done.stderr
    return subprocess.CompletedProcess(command, 0, b"", said)


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a Python module on the copy."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder / "import",
        env={**os.environ, "PYTHONPATH": str(folder / "import")},
        capture_output=True,
        text=True,
    )


def changed(folder: Path, diffs: Sequence[str], under: str = "") -> list[str]:
    """The Python files, of those whose paths begin with ``under``, that diffs change or add."""
    paths = re.findall(rf"^\+\+\+ b/({under}.*\.py)$", "\n".join(diffs), re.M)
    return [str(folder / path) for path in sorted(set(paths))]
