"""The LLVM text of loops that ships with the package: made ahead of time, from these sources.

``shipped/index.json`` lists each text with the loop and the kinds of arguments that it is for, and
a digest of the sources that it was made of. Where these have changed since, no text is taken.
``python -m vdla.compiler.ship_loops`` makes the texts.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "shipped"
INDEX = FOLDER / "index.json"


class Entry(NamedTuple):
    """A text: which loop and kinds of arguments it is for, and what it was made of."""

    loop: str
    kinds: str
    sources: str  # a digest of the files
    meaning: str  # a digest of what they say: the same where comments alone have changed
    file: str


def packed_text(loop: str, kinds: str, sources: str) -> bytes | None:
    """The compressed text for a loop and the kinds of its arguments; None where there is none, or
    where it was made of other sources."""
    entry = by_use().get((loop, kinds))
    if entry is None or entry.sources != sources:
        return None
    return (FOLDER / entry.file).read_bytes()


@cache
def by_use() -> dict[tuple[str, str], Entry]:
    """The entries of the index by loop and kinds."""
    return {(each.loop, each.kinds): each for each in entries()}


def entries() -> list[Entry]:
    """The entries of the index; none while they are made for the first time."""
    return [Entry(**each) for each in json.loads(INDEX.read_text())] if INDEX.exists() else []
