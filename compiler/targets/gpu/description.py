"""Capacities of a GPU: the limits that kernels are made for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.tir.ir import BLOCK_TAGS, SHARED, THREAD_TAGS, Alloc, For, PrimFunc, Stmt
from vdla.compiler.tir.visitor import stmt_children, walk
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.gpu.base import Gpu as Device
from vdla.runtime.kernels import OPENCL

GPU = "gpu"  # the target's name
LARGEST_GROUP = 1024  # threads: a processor that passes for a GPU says more, and gains nothing


@dataclass(frozen=True)
class Gpu:
    """A GPU's limits; as they stand, those that every GPU of the last ten years keeps.

    Attributes:
        group: the most threads of a group.
        sides: the most threads of a group along x, y and z.
        grid: the most groups along x, y and z.
        shared: the bytes of memory that a group shares.
        language: of its kernels: ``"opencl"``, or ``"ptx"`` for NVIDIA's alone.
        architecture: what PTX is for, as ``"sm_80"``; empty for OpenCL.
        name: the GPU's; empty where kernels are for any.
    """

    group: int = 256
    sides: tuple[int, int, int] = (256, 256, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    shared: int = 32768
    language: str = OPENCL
    architecture: str = ""
    name: str = ""

    @classmethod
    def of(cls, device: Device, language: str = OPENCL, architecture: str = "") -> Gpu:
        """The limits of a GPU that is at hand, and the code that it takes."""
        own = device.limits
        return cls(
            group=min(own.group, LARGEST_GROUP),
            sides=own.sides,
            shared=own.shared,
            language=language,
            architecture=architecture,
            name=device.name,
        )

    def check(self, func: PrimFunc) -> PrimFunc:
        """The function itself, if its kernels keep to the limits.

        Args:
            func: kernels, as ``passes.to_kernels`` gives them.

        Raises:
            NoCodeError: a kernel has too many threads or groups, or too much shared memory.
        """
        for kernel in kernels(func.body):
            grid, group = extents(kernel)
            self._check(func.name, "threads of a group", prod(group), self.group)
            for n, axis in enumerate("xyz"):
                self._check(func.name, f"threads of a group along {axis}", group[n], self.sides[n])
                self._check(func.name, f"groups along {axis}", grid[n], self.grid[n])
            self._check(func.name, "bytes of shared memory", shared_bytes(kernel), self.shared)
        return func

    def _check(self, name: str, what: str, count: int, limit: int) -> None:
        if count > limit:
            raise NoCodeError(f"{name}: expected at most {limit} {what}, found {count}")


ANY = Gpu()


def kernels(stmt: Stmt) -> Iterator[Stmt]:
    """The kernels of a function's body, in order: its nests less the buffers that they share.

    A kernel of one group has no loop over groups, so the buffers that its threads share are
    outermost in it.
    """
    threads = any(isinstance(s, For) and s.kind == "thread" for s in walk(stmt))
    shared = isinstance(stmt, Alloc) and stmt.buffer.scope == SHARED
    if isinstance(stmt, For) or shared or not threads:
        yield stmt
        return
    for child in stmt_children(stmt):
        yield from kernels(child)


def extents(kernel: Stmt) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Number of groups of a kernel along x, y and z, and number of threads of each along the same
    axes.
    """
    result = {s.thread_tag: s.extent for s in walk(kernel) if isinstance(s, For)}
    x, y, z = (result.get(tag, 1) for tag in BLOCK_TAGS)
    tx, ty, tz = (result.get(tag, 1) for tag in THREAD_TAGS)
    return (x, y, z), (tx, ty, tz)


def shared_bytes(kernel: Stmt) -> int:
    """The bytes of shared memory that a group of a kernel takes."""
    buffers = (s.buffer for s in walk(kernel) if isinstance(s, Alloc))
    return sum(b.span * dtype_of(b.dtype).itemsize for b in buffers if b.scope == SHARED)
