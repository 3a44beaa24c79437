"""A module's steps on a GPU: kernels in a row, and copies to and from the GPU's memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import repeat

from vdla.runtime import plan
from vdla.runtime.copies import Copies, constants_of
from vdla.runtime.gpu.base import Array, Gpu
from vdla.runtime.gpu.find import find_gpu
from vdla.runtime.module import Module
from vdla.runtime.results import Report, StepResult


class Launches:
    """A module's kernels on a GPU, with the constants that they read in its memory.

    Args:
        module: one with kernels.
        image: gives the bytes of a tensor in the host's image.
        constants: tensors that nothing writes.
        gpu: the GPU; by default the one that ``VDLA_GPU`` names, or the best.
    """

    def __init__(
        self,
        module: Module,
        image: Callable[[str], Array],
        constants: Collection[str],
        gpu: Gpu | None,
    ) -> None:
        assert module.kernels is not None
        gpu = gpu or find_gpu(module.kernels.language)
        self.tensors, self.image = module.tensors, image
        self.program = gpu.load(module.kernels, module.dram_bytes)
        for name in constants_of(module.steps, constants):
            self.program.upload(self.tensors[name].offset, image(name))
        self.program.finish()

    def copy(self, copies: Copies) -> Iterator[Callable[[], Report]]:
        """One action for each tensor that is copied between the image and the GPU's memory."""
        for name in copies.out:
            yield self._copy(name, self.program.upload, plan.Gpu.KIND)
        for name in copies.to_image:
            yield self._copy(name, self.program.download, "cpu")

    def _copy(self, name: str, move: Callable[[int, Array], None], to: str) -> Callable[[], Report]:
        run = partial(move, self.tensors[name].offset, self.image(name))
        return partial(_timed, f"{name} to {to}", run)

    def launch(self, steps: Sequence[plan.Gpu]) -> Callable[[], Report]:
        """Functions of kernels in a row, which are queued and not waited for."""
        program = self.program
        calls = [(s.function, [self.tensors[name].offset for name in s.args]) for s in steps]
        names = [str(step) for step in steps]

        def run() -> Report:
            times = [program.launch(*call) for call in calls]
            program.finish()
            seconds = [time() for time in times]
            return lambda: list(map(StepResult, names, repeat(plan.Gpu.KIND), seconds))

        return run


def _timed(name: str, move: Callable[[], None]) -> Report:
    """A copy, with the time that it takes."""
    began = time.perf_counter()
    move()
    seconds = time.perf_counter() - began
    return lambda: [StepResult(name, "copy", seconds)]
