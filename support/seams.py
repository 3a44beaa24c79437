"""Seams: lists of functions or rows that options add to, of files that know no option.

    OUTSIDE: Seam[Callable[[Config], Mapping[str, Instruction]]] = Seam()     of a host's file

    @OUTSIDE.add                                                              of an option's file
    def tables_outside(config: Config) -> Mapping[str, Instruction]: ...

What is added is there for all that a config has: an option's function says nothing of a config
without it. ``import_like`` finds the files of options in a room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Generic, TypeVar

E = TypeVar("E")


class Seam(Generic[E]):
    """A list that files add to; iterating gives all of it, in the order in which it was added."""

    def __init__(self) -> None:
        self.added: list[E] = []

    def add(self, each: E) -> E:
        """Adds a function or a row."""
        self.added.append(each)
        return each

    def __iter__(self) -> Iterator[E]:
        return iter(self.added)


def import_like(package: ModuleType, known: Iterable[ModuleType]) -> None:
    """Imports the files of a package in the order of the ``known`` ones of the same names.

    Raises:
        ImportError: a file has no namesake among these.
    """
    names = [each.__name__.rpartition(".")[2] for each in known]
    files = {each.name for each in iter_modules(package.__path__)}
    if strange := files.difference(names):
        raise ImportError(
            f"{package.__name__}: expected files named {', '.join(names)}, "
            f"found {', '.join(sorted(strange))}"
        )
    for name in names:
        if name in files:
            import_module(f"{package.__name__}.{name}")
