"""Loops of operators on disk: what one process has scheduled, others read.

A file holds the loops of one operator, under the digest of a text that says all that they depend
on; it is there whole or not at all, so processes, and machines with a common folder, may share it.
Reading loops takes a millisecond, scheduling them thirty. A store that can't be written or read, on
a full disk say, is as if it were empty.
"""

from __future__ import annotations

import pickle
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from vdla.compiler.tir.ir import PrimFunc
from vdla.support.files import cache_folder, write_bytes

KEPT = 4  # folders, each of other sources of the compiler
DAMAGED = (OSError, EOFError, zlib.error, pickle.UnpicklingError, ValueError, AttributeError)


@dataclass(frozen=True)
class LoopStore:
    """Loops in a folder. The files are trusted with the process, as all cached code is."""

    folder: Path

    def loops(self, key: str, make: Callable[[], PrimFunc]) -> PrimFunc:
        """The loops that a text stands for: those on disk, else what ``make`` gives, which is
        kept."""
        stored = self._read(key)
        if stored is not None:
            return stored
        made = make()
        self._write(key, made)
        return made

    def _read(self, key: str) -> PrimFunc | None:
        """None where the store has no loops that can be read."""
        try:
            value = pickle.loads(zlib.decompress(self._path(key).read_bytes()))
        except DAMAGED:
            return None
        return value if isinstance(value, PrimFunc) else None

    def _write(self, key: str, loops: PrimFunc) -> None:
        """Keeps loops, where the disk has room."""
        path = self._path(key)
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            write_bytes(path, zlib.compress(pickle.dumps(loops), 1))

    def _path(self, key: str) -> Path:
        name = sha256(key.encode()).hexdigest()
        return self.folder / name[:2] / name[2:]


@cache
def user_store(sources: str) -> LoopStore:
    """The store in the user's cache of the sources with this digest; those of the oldest go."""
    folder = cache_folder("loops", sources)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        others = (each for each in folder.parent.iterdir() if each != folder)
        newest = sorted(others, key=lambda each: each.stat().st_mtime, reverse=True)
        for each in newest[KEPT - 1 :]:
            shutil.rmtree(each, ignore_errors=True)
    return LoopStore(folder)
