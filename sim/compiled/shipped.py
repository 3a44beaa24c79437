"""Loops that ship with the package, made ahead of time from these sources: LLVM's text, and machine
code of that text for the usual processors.

``shipped/index.json`` lists each text with the loop and the kinds of arguments that it is for, and
a digest of the sources that it was made of. Where these have changed since, nothing is taken.
``python -m vdla.compiler.ship_loops`` makes all of it.
"""

from __future__ import annotations

import json
import lzma
import platform
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import llvmlite.binding as llvm

FOLDER = Path(__file__).parent / "shipped"
INDEX = FOLDER / "index.json"

PROCESSOR = "x86-64-v3"  # of the machine code: Intel's since 2013, AMD's since 2015
FEATURES = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt")  # v3's, of LLVM's


class Entry(NamedTuple):
    """A text: which loop and kinds of arguments it is for, and what it was made of."""

    loop: str
    kinds: str
    sources: str  # a digest of the files
    meaning: str  # a digest of what they say: the same where comments alone have changed
    file: str  # without its ending
    llvm: str  # which version made the machine code

    @property
    def text(self) -> Path:
        """The file of the compressed text."""
        return FOLDER / f"{self.file}.ll.xz"

    @property
    def code(self) -> Path:
        """The file of the compressed machine code: an object file of Linux."""
        return FOLDER / f"{self.file}.o.xz"


def entry_of(loop: str, kinds: str, sources: str) -> Entry | None:
    """Entry that ships for a loop and the kinds of its arguments; None where nothing does, where it
    was made of other sources, or where this machine lays out records and words otherwise."""
    entry = by_use().get((loop, kinds))
    usual = sys.byteorder == "little" and sys.maxsize > 2**32
    return entry if entry and entry.sources == sources and usual else None


def machine_code(entry: Entry) -> bytes | None:
    """The object file of an entry; None where this machine can't run it."""
    return lzma.decompress(entry.code.read_bytes()) if _runs_machine_code() else None


@cache
def _runs_machine_code() -> bool:
    """Whether it is Linux on a processor of that level."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    features = llvm.get_host_cpu_features()
    return all(features.get(name) for name in FEATURES)


@cache
def by_use() -> dict[tuple[str, str], Entry]:
    """The entries of the index by loop and kinds."""
    return {(each.loop, each.kinds): each for each in entries()}


def entries() -> list[Entry]:
    """The entries of the index; none while they are made for the first time."""
    return [Entry(**each) for each in json.loads(INDEX.read_text())] if INDEX.exists() else []
