"""Nested values as lists of leaves, and back: tuples, lists, dicts, named tuples, dataclasses.

Whatever is none of these is a leaf; None has no leaves. Dicts are ordered by their keys.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass


@dataclass(frozen=True)
class Structure:
    """Nesting of a value: its class, the names of its parts and their structures.

    A leaf's class is ``Leaf``.
    """

    kind: type
    keys: tuple[Hashable, ...] = ()
    parts: tuple[Structure, ...] = ()

    def build(self, leaves: Iterable[object]) -> object:
        """The value of this nesting with other leaves, which are taken in order."""
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[object]) -> object:
        if self.kind is Leaf:
            return next(leaves)
        if self.kind is type(None):
            return None
        values = [part._build(leaves) for part in self.parts]
        if issubclass(self.kind, dict):
            return dict(zip(self.keys, values, strict=True))
        if issubclass(self.kind, list | tuple) and not hasattr(self.kind, "_fields"):
            return self.kind(values)
        return self.kind(**dict(zip(map(str, self.keys), values, strict=True)))

    def paths(self, root: str = "") -> Iterator[str]:
        """The way to each leaf as Python writes it, behind ``root``: ``state[0].h``."""
        if self.kind is Leaf:
            yield root
        plain = issubclass(self.kind, dict | list | tuple) and not hasattr(self.kind, "_fields")
        for key, part in zip(self.keys, self.parts, strict=True):
            yield from part.paths(f"{root}[{key!r}]" if plain else f"{root}.{key}")

    def __str__(self) -> str:
        """The nesting as Python writes it, each leaf a dot."""
        if self.kind is Leaf:
            return "·"
        if self.kind is type(None):
            return "None"
        parts = ", ".join(map(str, self.parts))
        if self.kind in (tuple, list):
            return f"({parts})" if self.kind is tuple else f"[{parts}]"
        names = (f"{key}={part}" for key, part in zip(self.keys, self.parts, strict=True))
        return f"{self.kind.__name__}({', '.join(names)})"


class Leaf:
    """Class of leaves in structures; it has no objects."""


LEAF = Structure(Leaf)


def flatten(value: object) -> tuple[list[object], Structure]:
    """The leaves of a nested value, in order, and its structure."""
    if value is None:
        return [], Structure(type(None))
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: str(item[0]))
    elif isinstance(value, tuple | list):
        items = list(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
    elif is_dataclass(value) and not isinstance(value, type):
        items = [(f.name, getattr(value, f.name)) for f in fields(value)]
    else:
        return [value], LEAF
    pairs = [flatten(part) for _, part in items]
    leaves = [leaf for part, _ in pairs for leaf in part]
    keys = tuple(key for key, _ in items)
    return leaves, Structure(type(value), keys, tuple(part for _, part in pairs))
