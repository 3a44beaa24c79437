"""A project's files, written whole: one that is there is complete."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path

from vdla.support.files import write_bytes


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes files under a folder, which is made."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content.encode() if isinstance(content, str) else content)


def digest(folder: Path, names: Collection[str]) -> str:
    """SHA-256 in hex: of a file, or of what ``sha256sum`` prints of several in C's order."""
    sums = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}
    if len(sums) == 1:
        return next(iter(sums.values()))
    return hashlib.sha256("".join(f"{sums[n]}  {n}\n" for n in sorted(sums)).encode()).hexdigest()


def text(content: str | bytes) -> str:
    """A file's text, whichever way its maker holds it."""
    return content if isinstance(content, str) else content.decode()


def discard(folder: Path, *names: str) -> None:
    """Removes what an earlier run made, so that what is there is this one's."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
