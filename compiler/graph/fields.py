"""Fields of nodes and records that are being read from a graph's text."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from vdla.compiler.graph.ir import BY_OP, Graph, Node
from vdla.compiler.graph.printer import field_key, is_record
from vdla.compiler.graph.types import RECORDS
from vdla.compiler.text import ParseError

WORDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a string",
         type(None): "None"}  # fmt: skip


class Fields:
    """A class whose fields are being read; ``open`` are those to come, with their types. Long ones
    stand beside the text under ``where``."""

    def __init__(self, cls: type, where: str, **given: str) -> None:
        self.cls, self.op, self.where = cls, cls.__name__, where
        self.fields: dict[str, Any] = {**given}
        self.open = {key: hint for key, hint in _hints(cls).items() if key not in given}

    def path(self, key: str) -> str:
        """The name under which a long field stands beside the text."""
        return f"{self.where}.{key}"

    def missing(self) -> list[str]:
        """The fields that have neither a value nor a default."""
        return [f.name for f in fields(self.cls) if f.name in self.open and f.default is MISSING]


class NodeFields(Fields):
    """A node whose fields are being read."""

    def __init__(self, cls: type[Node], name: str, output: str) -> None:
        super().__init__(cls, name, name=name, output=output)
        self.counted, self.order = cls.COUNTED, cls.OPERANDS
        self.operands = {key: self.open.pop(key) for key in cls.OPERANDS}
        self.regions = [key for key, hint in self.open.items() if hint is Graph]
        for key in self.regions:
            del self.open[key]
        nested = [key for key, hint in self.open.items() if Node in get_args(hint)]
        self.parts = nested[0] if nested else ""
        self.open.pop(self.parts, None)

    def path(self, key: str) -> str:
        """The name under which a long field stands beside the text."""
        return field_key(self.where, key)

    def take_others(self, names: list[str], refused: Callable[[], ParseError]) -> None:
        """Gives the results behind the first one their names; raises where there are none."""
        if self.open.pop("others", None) is not None:
            self.fields["others"] = tuple(names)
        elif names:
            raise refused()

    def take_operands(self, names: list[str]) -> str:
        """Gives the operands their names; what was expected if they are too few or too many."""
        left = list(names)
        for key, hint in self.operands.items():
            if get_origin(hint) is tuple:
                self.fields[key], left = tuple(left), []
            elif left:
                self.fields[key] = left.pop(0)
            elif type(None) in get_args(hint):
                self.fields[key] = None
            else:
                return f"{len(self.operands)} operands ({', '.join(self.operands)})"
        return f"at most {len(self.operands)} operands ({', '.join(self.operands)})" if left else ""

    def __call__(self, parts: tuple[Node, ...]) -> Node:
        """The node, with the parts that stand below it."""
        more: dict[str, Any] = {self.parts: parts} if self.parts else {}
        if self.counted:  # of what a tuple has taken the last one may be another operand
            several, last = self.order
            names, count = self.fields[several], len(self.fields[self.counted])
            more |= {several: names[:count], last: (*names[count:], None)[0]}
        node: Node = self.cls(**{**self.fields, **more})
        return node


@cache
def _hints(cls: type) -> dict[str, Any]:
    """The types of a class's fields, by their names."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in fields(cls)}


@cache
def operators() -> dict[str, type[Node]]:
    """Every operator of the graph IR, by the name of its class."""
    return dict(sorted(BY_OP.items()))


def fits(value: object, hint: object) -> bool:
    """Whether a value has a field's type; a whole number is a number too."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(fits(value, each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        each = get_args(hint)
        if not isinstance(value, tuple):
            return False
        if each[-1] is ...:
            return all(fits(v, each[0]) for v in value)
        return len(value) == len(each) and all(map(fits, value, each))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if is_record(value):
        return isinstance(hint, type) and isinstance(value, hint)
    return type(value) is hint


def words(hint: object) -> str:
    """A field's type for people."""
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(map(words, get_args(hint)))
    if get_origin(hint) is tuple:
        each = get_args(hint)
        kind = words(each[0]).removeprefix("a ") + "s"
        return f"{kind} in brackets" if each[-1] is ... else f"{len(each)} {kind} in brackets"
    if not isinstance(hint, type):
        return "<N bytes>"
    records = (f"{name}(…)" for name, kind in RECORDS.items() if issubclass(kind, hint))
    return WORDS.get(hint) or " or ".join(records) or "<N bytes>"


def shown(value: object) -> str:
    """A field's value for people, cut where it is long."""
    text = f"({', '.join(map(repr, value))})" if isinstance(value, tuple) else repr(value)
    return text if len(text) < 60 else f"{text[:60]}…"
