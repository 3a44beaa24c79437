"""Time that the GPU at hand takes for a scheduled function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from vdla.compiler.schedule.trace import Step
from vdla.compiler.search.measurer import RefusalError
from vdla.compiler.targets.gpu.lower import kernels_of
from vdla.compiler.targets.gpu.search.function import GpuFunction
from vdla.compiler.targets.search.stopwatch import Array, Stopwatch
from vdla.runtime.gpu.base import Gpu, Program, places
from vdla.runtime.gpu.find import find_gpu


class GpuStopwatch(Stopwatch[GpuFunction]):
    """Stopwatch of schedules of a GPU's function."""

    def runner(self, trace: Sequence[Step], arrays: Sequence[Array]) -> KernelRunner:
        """Kernels of a trace's schedule, over arrays in the GPU's memory.

        Raises:
            RefusalError: the GPU at hand is not the function's.
        """
        kernels = kernels_of([self.function.code(trace)], self.function.gpu)
        ((name, function),) = kernels.functions.items()
        offsets, size = places(function.params)
        program = self._device().load(kernels, size)
        for offset, array in zip(offsets, arrays, strict=True):
            program.upload(offset, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return KernelRunner(program, name, offsets, np.empty_like(arrays[-1]))

    def _device(self) -> Gpu:
        """The GPU at hand, which has the name of the function's, if that has one.

        Raises:
            RefusalError: it is another GPU than the function's.
        """
        device, expected = _device(self.function.gpu.language), self.function.gpu.name
        if expected and device.name != expected:
            raise RefusalError(
                f"gpu: expected {expected}, found {device.name}; have workers with that GPU alone "
                "announce gpu"
            )
        return device


@dataclass(frozen=True)
class KernelRunner:
    """Kernels in the GPU's memory; ``array`` gets the result."""

    program: Program
    name: str
    offsets: Sequence[int]
    array: Array

    def run(self) -> None:
        """Launches them, and waits for their end."""
        self.program.launch(self.name, self.offsets)
        self.program.finish()

    def result(self) -> Array:
        """Result that the kernels wrote."""
        self.program.download(self.offsets[-1], self.array.reshape(-1).view(np.uint8))
        return self.array


@cache
def _device(language: str) -> Gpu:
    """The GPU at hand that takes a language."""
    return find_gpu(language)
