"""Cycles of a user's kernel under a schedule, in one of the workers.

The stream is proved sound by the static checker, its cycles are the simulator's, and its result is
compared with that of the unscheduled expression, which the interpreter runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from vdla.compiler.schedule.trace import Trace
from vdla.compiler.search.measurer import Meter
from vdla.compiler.targets.accelerator.search.kernel import AcceleratorFunction
from vdla.compiler.targets.accelerator.search.simulation import Cycles
from vdla.compiler.targets.accelerator.standalone import Standalone
from vdla.compiler.targets.search.stopwatch import Array, random_array
from vdla.compiler.tir.interp import run
from vdla.isa.instructions import Finish
from vdla.sim.checker import check
from vdla.sim.machine import simulate, warm_up
from vdla.support.errors import UserError


@dataclass(frozen=True, eq=False)
class KernelMeter(Meter[Trace, Cycles]):
    """Meter of the schedules of a kernel on the cycle simulator."""

    MEMORY: ClassVar[int | None] = 8 << 30

    function: AcceleratorFunction

    def measure(self, candidate: Trace) -> Cycles:
        """Compiles, checks and times a schedule, alone and cold, and compares its result."""
        try:
            built = self.function.program(candidate)
            findings = built.check()
            if findings:
                first = findings[0]
                return Cycles("illegal", f"{first.kind} at {first.index}: {first.text}")
            return self._simulated(built)
        except UserError as error:
            return Cycles("illegal", str(error))

    def _simulated(self, built: Standalone) -> Cycles:
        """The cycles of a sound program, if its result is right."""
        arrays = _reference(self.function)
        views = {
            param.name: _view(built, param.name, arrays[param.name])
            for param in self.function.params
        }
        result = self.function.params[-1].name
        for name, view in views.items():
            if name != result:
                view[...] = arrays[name]
        stream, base = built.program.instructions, built.program.base
        cycles = simulate(built.program.config, stream, built.dram, base).cycles
        if not np.array_equal(views[result], arrays[result]):
            return Cycles("illegal", "its result differs from the interpreter's")
        return Cycles("ok", cycles=cycles)

    def lost(self, status: str, note: str) -> Cycles:
        """The outcome of a schedule that no answer came for."""
        return Cycles(status, note)

    def warm_up(self) -> None:
        """Has the simulator's and the checker's loops compiled."""
        warm_up(self.function.config)
        check(self.function.config, [Finish()])


def _view(built: Standalone, name: str, like: Array) -> Array:
    """A tensor in a program's DRAM."""
    low = built.addresses[name]
    return built.dram[low : low + like.nbytes].view(like.dtype).reshape(like.shape)


@lru_cache(maxsize=8)
def _reference(function: AcceleratorFunction) -> Mapping[str, Array]:
    """Arrays for a kernel's parameters, and its result, by the interpreter."""
    rng = np.random.default_rng(0)
    arrays = {param.name: random_array(param, rng) for param in function.params}
    run(function.code(()), list(arrays.values()))
    return arrays
