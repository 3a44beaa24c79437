"""Tensor expressions under TVM's names: ``from vdla import te``. See docs/tutorial.md.

In a function that te calls, such as the body of ``te.compute``, ``i == j`` is an expression, as
``i < j`` is one. The compiler, whose own functions these are, compares trees by ``==``.
"""

from collections.abc import Callable
from functools import wraps
from inspect import isroutine
from typing import Any, TypeVar

from vdla.compiler import te as _te
from vdla.compiler.schedule import create_schedule
from vdla.compiler.te import *  # noqa: F403
from vdla.compiler.tir.ir.comparison import comparing

__all__ = [*_te.__all__, "create_schedule"]

F = TypeVar("F", bound=Callable[..., Any])


def _taking_functions(take: F) -> F:
    """A function of te that takes functions of the user's: within these ``==`` compares values."""

    @wraps(take)
    def call(*args: object, **options: object) -> object:
        with comparing(values=False):
            return take(
                *map(_of_values, args), **{key: _of_values(each) for key, each in options.items()}
            )

    return call  # type: ignore[return-value]  # of the same signature


def _of_values(value: object) -> object:
    """A user's function with ``==`` as an expression; whatever else it is, as it is."""
    if not isroutine(value):
        return value

    @wraps(value)
    def call(*args: object, **options: object) -> object:
        with comparing(values=True):
            return value(*args, **options)

    return call


compute = _taking_functions(_te.compute)
extern = _taking_functions(_te.extern)
scan = _taking_functions(_te.scan)
comm_reducer = _taking_functions(_te.comm_reducer)
decl_intrin = _taking_functions(_te.decl_intrin)
