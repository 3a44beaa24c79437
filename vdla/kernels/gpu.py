"""Kernels of numpy arrays on a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vdla.compiler.targets.gpu.description import GPU
from vdla.compiler.targets.gpu.description import Gpu as Described
from vdla.compiler.targets.gpu.lower import kernels_of, lower_function
from vdla.compiler.tir.ir import Buffer, PrimFunc
from vdla.compiler.tir.printer import show
from vdla.kernels.kernel import Array, Kernel, KernelRun, Runner
from vdla.runtime.errors import DeviceError
from vdla.runtime.gpu.base import Gpu, places
from vdla.runtime.gpu.find import find_gpu


class GpuKernel(Kernel):
    """A kernel for GPUs, which is compiled for the one that it runs on."""

    def __init__(
        self, func: PrimFunc, params: Sequence[Buffer], passes: dict[str, str], gpu: Described
    ) -> None:
        super().__init__(func, params, passes)
        lowered = lower_function(func, gpu, self._keep)
        self.kernels = kernels_of([lowered], gpu)
        self.passes[gpu.language] = self.kernels.source
        self.order = {param: func.params.index(param) for param in params}

    def _keep(self, name: str, done: PrimFunc) -> None:
        """Keeps the program's text after a pass."""
        self.passes[name] = show(done)

    def _prepare(self, device: str, board: str | None, virtual: bool, port: str | None) -> Runner:
        if device not in ("", GPU) or board or virtual or port:
            raise DeviceError(
                f'{self.name}: expected device "gpu", for which it was built, found {device!r}'
            )
        return _OnGpu(self, find_gpu(self.kernels.language)).run


class _OnGpu:
    """A kernel on a GPU, with the offsets of its parameters in the GPU's memory."""

    def __init__(self, kernel: GpuKernel, gpu: Gpu) -> None:
        self.kernel = kernel
        sizes = kernel.kernels.functions[kernel.name].params
        self.offsets, size = places(sizes)
        self.program = gpu.load(kernel.kernels, size)

    def run(self, arrays: Sequence[Array]) -> KernelRun:
        kernel, program = self.kernel, self.program
        where = [(self.offsets[kernel.order[p]], p in kernel.written) for p in kernel.params]
        for (offset, _), array in zip(where, arrays, strict=True):
            program.upload(offset, np.ascontiguousarray(array))
        seconds = program.launch(kernel.name, self.offsets)
        program.finish()
        for (offset, written), array in zip(where, arrays, strict=True):
            if written:
                result = np.empty(array.shape, array.dtype)
                program.download(offset, result)
                array[...] = result
        return KernelRun(seconds())
