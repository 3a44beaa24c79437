"""Kernels, which groups of threads run, as a module carries them.

A function computes one node, by kernels that are launched in order. Grammar::

    Kernels  := language architecture source Function*
    Function := name params scratch Launch*      the bytes of each parameter, its result last, and
                                                 of each buffer that its kernels need beside them
    Launch   := kernel grid group args shared    how many groups, how many threads in each, along
                                                 x, y and z; which buffers of ``params + scratch``
                                                 the kernel takes, by number; bytes of shared memory

A kernel's arguments are one byte offset (a 64-bit integer) for each of ``args``, behind a pointer
to the memory that all buffers lie in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from vdla.runtime.errors import ModuleError

OPENCL, PTX = "opencl", "ptx"
Extent = tuple[int, int, int]  # along x, y and z


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel."""

    kernel: str
    grid: Extent
    group: Extent
    args: tuple[int, ...]
    shared: int


@dataclass(frozen=True)
class KernelFunction:
    """Buffers that one node's kernels need, and their launches."""

    params: tuple[int, ...]
    scratch: tuple[int, ...]
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Kernels:
    """All kernels of a module: one source, and the functions by name.

    ``language`` is ``"opencl"`` or ``"ptx"``; ``architecture`` is what PTX is for, as ``sm_80``,
    and empty for OpenCL, which is compiled where it runs.
    """

    language: str
    architecture: str
    source: str
    functions: Mapping[str, KernelFunction]


def to_json(kernels: Kernels) -> dict[str, Any]:
    """Kernels as a module's header has them: all but the source."""
    return {
        "language": kernels.language,
        "architecture": kernels.architecture,
        "functions": {name: asdict(function) for name, function in kernels.functions.items()},
    }


def from_json(value: Mapping[str, Any], source: str) -> Kernels:
    """Kernels of a header that fits the schema, with their source."""
    functions = {name: _function(each) for name, each in value["functions"].items()}
    return Kernels(value["language"], value["architecture"], source, functions)


def check_launches(kernels: Kernels) -> None:
    """Raises ModuleError where a launch takes a buffer that its function doesn't have."""
    for name, function in kernels.functions.items():
        count = len(function.params) + len(function.scratch)
        for launch in function.launches:
            wrong = [number for number in launch.args if not 0 <= number < count]
            if wrong:
                raise ModuleError(
                    f"function {name}: expected {launch.kernel} to take buffers from 0 to "
                    f"{count - 1}, found {wrong[0]}"
                )


def _function(value: Mapping[str, Any]) -> KernelFunction:
    launches = tuple(
        Launch(
            each["kernel"],
            _extent(each["grid"]),
            _extent(each["group"]),
            tuple(each["args"]),
            each["shared"],
        )
        for each in value["launches"]
    )
    return KernelFunction(tuple(value["params"]), tuple(value["scratch"]), launches)


def _extent(value: list[int]) -> Extent:
    x, y, z = value
    return x, y, z
