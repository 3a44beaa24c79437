"""Code for targets that live in packages of their own: the package's runtime runs it.

A package names a function under the entry points ``vdla.runtimes``, by its target's name. It gets
the code that the target's compiler made of one node, once, and returns what runs it over arrays:

    def load(code: bytes) -> Callable[[Sequence[Array]], int | None]

The arrays are views of the module's image as its tensors have their shapes, the node's result last;
it is written in place. The number returned is how many cycles that took; None where the target
counts none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from numpy.typing import NDArray

from vdla.runtime.errors import DeviceError, ModuleError

GROUP = "vdla.runtimes"

Array = NDArray[Any]
Run = Callable[[Sequence[Array]], int | None]


def find_runtime(target: str) -> EntryPoint:
    """Entry point of an installed package that runs a target's code.

    Raises:
        ModuleError: there is no such package.
    """
    result = {entry.name: entry for entry in entry_points(group=GROUP)}
    if target not in result:
        known = ", ".join(result) or "none"
        raise ModuleError(
            f"module: expected an installed package with a runtime for {target} "
            f"(entry points {GROUP}), found {known}"
        )
    return result[target]


def load_code(runtime: EntryPoint, code: bytes) -> Run:
    """Makes the code of one node ready to be run as often as you like.

    Running it raises DeviceError where the package's runtime raises anything.

    Raises:
        ModuleError: the runtime can't take the code.
    """
    try:
        run: Run = runtime.load()(code)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ModuleError(
            f"module: expected {runtime.value} to take its code, found {what}"
        ) from error

    def guarded(arrays: Sequence[Array]) -> int | None:
        try:
            return run(arrays)
        except Exception as error:
            what = f"{type(error).__name__}: {error}"
            raise DeviceError(
                f"device {runtime.name}: expected its code to run, found {what}"
            ) from error

    return guarded
