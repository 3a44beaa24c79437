"""Time that a processor takes for a scheduled function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vdla.compiler.schedule.trace import Step
from vdla.compiler.targets.errors import NoCodeError
from vdla.compiler.targets.processor.codegen.llvm import CodegenError, NativeFunction, jit
from vdla.compiler.targets.processor.search.function import ProcessorFunction
from vdla.compiler.targets.search.stopwatch import Array, Stopwatch
from vdla.compiler.tir.ir.error import BoundsError


@dataclass(frozen=True, eq=False)
class ProcessorStopwatch(Stopwatch[ProcessorFunction]):
    """Stopwatch of schedules of a processor's function, with some threads."""

    def runner(self, trace: Sequence[Step], arrays: Sequence[Array]) -> NativeRunner:
        """Machine code of a trace's schedule; there is none where an access isn't proved to stay
        within its buffer."""
        try:
            (code,) = jit(
                [self.function.code(trace)], self.threads, self.function.processor
            ).values()
        except (CodegenError, BoundsError) as error:
            raise NoCodeError(str(error)) from error
        return NativeRunner(code, arrays)


@dataclass(frozen=True)
class NativeRunner:
    """Machine code with its arrays, the result last."""

    code: NativeFunction
    arrays: Sequence[Array]

    def run(self) -> None:
        """Calls it."""
        self.code(*self.arrays)

    def result(self) -> Array:
        """Result that the function wrote."""
        return self.arrays[-1]
