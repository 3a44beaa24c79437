"""Seams: functions of the simulator that options add to.

    @seam("or")
    def alu_beyond(m: Machine, t: Tables, row: int) -> bool:
        return False                                     what holds without any option

    @alu_beyond.add
    def table_beyond(m: Machine, t: Tables, row: int) -> bool: ...

A seam is called like the function. It gives what the function gives, and what all that was added
gives, joined:

    "or"      whether one of them holds; those behind it aren't asked
    "|"       the same, and each is asked
    "and"     whether all of them hold
    "+"       their sum
    "then"    nothing: each runs
    "choice"  by the first argument, a number: what was added for that, else the function's own

Compiled loops call seams too, and inline all of it. What is added comes before the first call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from vdla.sim.compiled import native

P = ParamSpec("P")
R = TypeVar("R")


class Seam(Generic[P, R]):
    """A function, and what options have added to it."""

    def __init__(self, function: Callable[P, R], join: str) -> None:
        self.function, self.join = function, join
        self.hooks: list[tuple[int, Callable[P, R]]] = []
        native.HELPERS[function] = True
        native.SEAMS.add(self)
        update_wrapper(self, function)

    def add(self, hook: Callable[P, R]) -> Callable[P, R]:
        """Adds a function."""
        return self._add(0, hook)

    def on(self, number: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Adds a function for a number, of a seam that is a choice."""
        return lambda hook: self._add(int(number), hook)

    def _add(self, number: int, hook: Callable[P, R]) -> Callable[P, R]:
        if "joined" in vars(self):
            raise RuntimeError(f"{self.function.__name__}: {hook.__name__} is added after a call")
        native.HELPERS[hook] = True
        self.hooks.append((number, hook))
        return hook

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function, and what was added."""
        return self.joined(*args, **kwargs)

    @cached_property
    def joined(self) -> Callable[P, R]:
        """One function of all of them, as Python's source: numba inlines its calls."""
        names = list(inspect.signature(self.function).parameters)
        given = f"({', '.join(names)})"
        calls = [f"hook{n}{given}" for n in range(len(self.hooks))]
        if self.join == "choice":
            numbers = (number for number, _ in self.hooks)
            lines = [
                f"if {names[0]} == {number}: return {call}"
                for number, call in zip(numbers, calls, strict=True)
            ]
            lines.append(f"return base{given}")
        elif self.join == "then":
            lines = [f"base{given}", *calls]
        else:
            lines = ["return " + f" {self.join} ".join([f"base{given}", *calls])]
        space: dict[str, Any] = {f"hook{n}": hook for n, (_, hook) in enumerate(self.hooks)}
        space["base"] = self.function
        exec("\n    ".join([f"def joined{given}:", *lines]), space)
        joined: Callable[P, R] = space["joined"]
        native.HELPERS[joined] = True
        return joined


def seam(join: str) -> Callable[[Callable[P, R]], Seam[P, R]]:
    """Makes a function a seam."""
    return lambda function: Seam(function, join)
