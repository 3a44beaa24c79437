"""From kernels in loop IR to what a module carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from vdla.compiler.targets.gpu.codegen.kernel import Kernel
from vdla.compiler.targets.gpu.codegen.opencl import opencl
from vdla.compiler.targets.gpu.codegen.ptx import check_functions, ptx
from vdla.compiler.targets.gpu.description import Gpu, extents, kernels, shared_bytes
from vdla.compiler.targets.gpu.passes import to_kernels
from vdla.compiler.tir.ir import Alloc, Buffer, PrimFunc, Stmt
from vdla.compiler.tir.lower import written_buffers
from vdla.compiler.tir.visitor import stmt_loads, walk
from vdla.runtime.dtypes import dtype_of
from vdla.runtime.kernels import PTX, KernelFunction, Kernels, Launch

Report = Callable[[str, PrimFunc], None]


def lower_function(func: PrimFunc, gpu: Gpu, report: Report = lambda name, func: None) -> PrimFunc:
    """A scheduled function as kernels that a GPU can hold.

    Raises:
        NoCodeError: there are none; the message says why.
    """
    lowered = gpu.check(to_kernels(func, report))
    return check_functions(lowered) if gpu.language == PTX else lowered


def kernels_of(functions: Iterable[PrimFunc], gpu: Gpu) -> Kernels:
    """Kernels in a module, of functions that ``lower_function`` gave for that GPU.

    Raises:
        NoCodeError: one of them has no code in the GPU's language.
        TargetError: the GPU's architecture isn't known.
    """
    sources: list[Kernel] = []
    made: dict[str, KernelFunction] = {}
    for func in functions:
        own = kernel_sources(func)
        sources += own
        made[func.name] = _function(func, own)
    return Kernels(gpu.language, gpu.architecture, _source(sources, gpu), made)


def _source(sources: Sequence[Kernel], gpu: Gpu) -> str:
    """Kernels in a GPU's language."""
    return ptx(sources, gpu.architecture) if gpu.language == PTX else opencl(sources)


def kernel_sources(func: PrimFunc) -> list[Kernel]:
    """A function's kernels with the buffers that each of them gets."""
    everything = (*func.params, *_scratch(func))
    return [
        Kernel(f"{func.name}_{n}", [b for b in everything if b in _used(nest)], nest)
        for n, nest in enumerate(kernels(func.body))
    ]


def _scratch(func: PrimFunc) -> list[Buffer]:
    """The buffers that a function's kernels share, beside its parameters."""
    own = {s.buffer for nest in kernels(func.body) for s in walk(nest) if isinstance(s, Alloc)}
    allocs = (s.buffer for s in walk(func.body) if isinstance(s, Alloc))
    return [buffer for buffer in allocs if buffer not in own]


def _function(func: PrimFunc, sources: list[Kernel]) -> KernelFunction:
    """A function's launches."""
    everything = (*func.params, *_scratch(func))
    numbers: Mapping[Buffer, int] = {buffer: n for n, buffer in enumerate(everything)}
    launches = tuple(
        Launch(
            kernel.name,
            *extents(kernel.body),
            tuple(numbers[b] for b in kernel.buffers),
            shared_bytes(kernel.body),
        )
        for kernel in sources
    )
    params = tuple(map(_bytes, func.params))
    return KernelFunction(params, tuple(map(_bytes, _scratch(func))), launches)


def _bytes(buffer: Buffer) -> int:
    """The bytes that a buffer's memory holds."""
    return buffer.span * dtype_of(buffer.dtype).itemsize


def _used(nest: Stmt) -> set[Buffer]:
    """The buffers that statements read or write."""
    return written_buffers(nest) | {load.buffer for load in stmt_loads(nest)}
