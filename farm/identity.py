"""Which vdla this is: its version, and a digest of its sources.

Machines of one farm must do the same thing with the same job, and read each other's pickles.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Self

PACKAGE, ENGINE = "vdla", "distributed"
ROOMS = ("support", "farm", "isa", "sim", "hw", "compiler", "runtime", "boards", "explore")
SUFFIXES = frozenset((".py", ".c", ".cpp", ".v", ".ll", ".toml", ".jsonl", ".onnx", ".npz"))


@dataclass(frozen=True)
class Identity:
    """Identity that two machines must have in common to share work."""

    version: str
    sources: str  # the first 12 hex digits of a SHA-256
    python: str  # as 3.11: functions travel as its bytecode
    dask: str  # the version of distributed

    def __str__(self) -> str:
        return (
            f"vdla {self.version} with sources {self.sources}, Python {self.python} and "
            f"Dask {self.dask}"
        )

    def message(self) -> dict[str, str]:
        """Fields of the identity, to be sent."""
        return asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, str]) -> Self:
        """The identity that another vdla sent, which may know of other fields."""
        return cls(*(str(message.get(field.name, "unknown")) for field in fields(cls)))


@cache
def identity() -> Identity:
    """The identity of the vdla that runs."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Identity(version(PACKAGE), _digest_of_sources(), python, version(ENGINE))


def _digest_of_sources() -> str:
    result = hashlib.sha256()
    for name, path in sorted(_sources()):
        content = path.read_bytes()
        result.update(f"{name} {len(content)} ".encode())
        result.update(content)
    return result.hexdigest()[:12]


def _sources() -> Iterator[tuple[str, Path]]:
    """(name, path) of each source file; names don't depend on how vdla is installed."""
    for room in (PACKAGE, *ROOMS):
        spec = find_spec(room if room == PACKAGE else f"{PACKAGE}.{room}")
        for place in (spec.submodule_search_locations or ()) if spec else ():
            for path in Path(place).rglob("*"):
                within = path.relative_to(place)
                nested = room == PACKAGE and within.parts[0] in ROOMS  # a wheel has rooms inside
                if path.suffix in SUFFIXES and not nested:
                    yield f"{room}/{within.as_posix()}", path
