"""Loops in Python that run as machine code.

    @compiled("simulator")
    def _run(m: Machine, t: Tables) -> int: ...

A loop takes arrays, numbers, records and tuples of these, and gives a whole number or nothing. It
makes no array, raises nothing and divides by no 0. Its source of truth is the Python function; who
sets ``NUMBA_DISABLE_JIT=1`` runs that. Else it is machine code, by the first of

    the cache       that an earlier process made of the same text of LLVM for this processor
    what ships      LLVM's text in ``shipped/``, made of these sources ahead of time: a second
    numba           makes LLVM's text, where sources were edited: half a minute

What a loop calls is marked ``inline`` or ``shared``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any, TypeVar, cast

from vdla.sim.compiled import native
from vdla.sim.compiled.arguments import laid_out

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
LOOPS: list[Loop] = []
_lock = Lock()


class Loop:
    """A function that runs as machine code, one piece of it for the kinds of its arguments."""

    def __init__(self, function: Callable[..., Any], title: str) -> None:
        self.function, self.title = function, title
        self.name = f"{function.__module__}.{function.__qualname__}"
        self.code: dict[str, native.Code] = {}  # by the kinds of arguments
        update_wrapper(self, function)
        LOOPS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        """Runs it. The arguments' arrays are contiguous, aligned and may be written to."""
        if INTERPRETED:
            return self.function(*arguments)
        words, kinds = laid_out(arguments)
        return self._code(kinds, arguments)(words)

    def prepare(self, *arguments: Any) -> None:
        """Has machine code for arguments of such kinds ready, and runs nothing."""
        if not INTERPRETED:
            self._code(laid_out(arguments)[1], arguments)

    def _code(self, kinds: str, arguments: tuple[Any, ...]) -> native.Code:
        code = self.code.get(kinds)
        if code is None:
            with _lock:
                code = self.code[kinds] = self.code.get(kinds) or native.code_of(
                    self, kinds, arguments
                )
        return code


def compiled(title: str) -> Callable[[F], F]:
    """Makes a function a loop; ``title`` says in messages what is compiled."""

    def made(function: F) -> F:
        return cast(F, Loop(function, title))

    return made


def prepare(function: Callable[..., Any], *arguments: Any) -> None:
    """Has a loop's machine code for arguments of such kinds ready, and runs nothing."""
    cast(Loop, function).prepare(*arguments)


def inline(function: F) -> F:
    """Lets compiled loops inline a helper; called from Python it is the plain function."""
    native.HELPERS[function] = True
    return function


def shared(function: F) -> F:
    """Compiles a helper once for all of its callers, where ``inline`` would copy it into each."""
    native.HELPERS[function] = False
    return function
