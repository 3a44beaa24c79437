"""The names of a text: what is bound where, and what a name means at a place."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from vdla.compiler.text import Reader, Token
from vdla.compiler.tir.ir import Buffer, Var

Place = TypeVar("Place")  # of a name in its source
Bound = ChainMap[str, tuple[Var | Buffer, Token]]  # what is bound, and where
Thing = TypeVar("Thing", Var, Buffer)


class Scopes(Generic[Place]):
    """Names that are bound, scope within scope."""

    def __init__(self) -> None:
        self.bound: ChainMap[str, tuple[Var | Buffer, Place]] = ChainMap()

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forgets what is bound inside when it ends."""
        self.bound = self.bound.new_child()
        yield
        self.bound = self.bound.parents

    @contextmanager
    def seen_from(self, bound: ChainMap[str, tuple[Var | Buffer, Place]]) -> Iterator[None]:
        """Inside, other names are bound than around it."""
        around, self.bound = self.bound, bound
        yield
        self.bound = around


class Names(Scopes[Token]):
    """Meanings of the names at the place that the reader has come to."""

    def __init__(self, read: Reader) -> None:
        super().__init__()
        self.read = read

    def new(self, what: str) -> tuple[str, Token]:
        """Takes a name that nothing around it has.

        Raises:
            ParseError: another line binds it, or there is none.
        """
        token = self.read.token
        name = self.read.name(what)
        if name in self.bound:
            line = self.bound[name][1].line
            raise self.read.error("a new name", token, f"{name}, which line {line} binds")
        return name, token

    def bind(self, name: str, thing: Var | Buffer, token: Token) -> None:
        """From here on in this scope, ``name`` means ``thing``."""
        self.bound[name] = (thing, token)

    def known(self, kind: type[Thing], what: str) -> Thing:
        """Takes the name of a variable or buffer and gives what it means.

        Raises:
            ParseError: nothing of that kind has the name.
        """
        token = self.read.token
        name = self.read.name(what)
        thing = self.bound[name][0] if name in self.bound else None
        if not isinstance(thing, kind):
            group = [n for n, (thing, _) in self.bound.items() if isinstance(thing, kind)]
            choice = f" of {', '.join(sorted(group))}" if group else ""
            raise self.read.error(f"{what}{choice}", token, name)
        return thing
