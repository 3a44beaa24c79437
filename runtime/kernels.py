"""Kernels for a GPU, as a module carries them.

A function computes one node, by kernels that are launched in order. Grammar::

    Kernels  := language architecture source Function*
    Function := name params scratch Launch*       the bytes of each parameter, its result last, and
                                                  of each buffer that its kernels need beside them
    Launch   := kernel grid group args shared     how many groups, how many threads in each, along x,
                                                  y and z; which buffers of ``params + scratch`` the
                                                  kernel takes, by number; bytes of shared memory

A kernel's arguments are one byte offset (a 64-bit integer) for each of ``args``, behind a pointer to
the memory that all buffers lie in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    """What one node's kernels need, and their launches."""

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
