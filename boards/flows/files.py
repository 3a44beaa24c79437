"""A project's files, written whole: one that is there is complete."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Writes files under a folder, which is made."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(part, path)


def text(content: str | bytes) -> str:
    """A file's text, whichever way its maker holds it."""
    return content if isinstance(content, str) else content.decode()


def discard(folder: Path, *names: str) -> None:
    """Removes what an earlier run made, so that what is there is this one's."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
