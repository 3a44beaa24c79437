"""Share of the other engines' work that lies beside GEMM: that is what latency hiding hides.

An engine works in a cycle in which an instruction of its is started and not finished. The work is
hidden where a GEMM is started and not finished in that cycle, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vdla.isa.config import Config
from vdla.isa.instructions import Gemm
from vdla.isa.ring import Engine, ring_of
from vdla.sim.machine import Run

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Work:
    """An engine's cycles with an instruction in flight, and those of them beside a GEMM."""

    cycles: int = 0
    hidden: int = 0

    @property
    def text(self) -> str:
        """The hidden share in percent; a dash where the engine did nothing."""
        return f"{100 * self.hidden / self.cycles:.1f} %" if self.cycles else "–"


def others(config: Config) -> tuple[Engine, ...]:
    """The engines that GEMM can hide, in ring order: all but the one that executes it."""
    ring = ring_of(config)
    return tuple(engine for engine in ring.engines if engine != ring.executor[Gemm])


def work(run: Run) -> dict[str, Work]:
    """The work of each engine but GEMM's in a run, by the engine's name, in ring order."""
    ring = ring_of(run.config)
    runs_on = np.array([ring.engine_of(each) for each in run.instructions])
    gemm = _in_flight(run, np.array([isinstance(each, Gemm) for each in run.instructions]))
    result = {}
    for engine in others(run.config):
        flags = _in_flight(run, runs_on == engine)
        result[engine.name] = Work(int(flags.sum()), int((flags & gemm).sum()))
    return result


def total(works: Iterable[Work]) -> Work:
    """The work of one engine in several runs."""
    cycles, hidden = 0, 0
    for each in works:
        cycles, hidden = cycles + each.cycles, hidden + each.hidden
    return Work(cycles, hidden)


def _in_flight(run: Run, which: Flags) -> Flags:
    """For each cycle of a run, whether some of these instructions is in flight."""
    change = np.zeros(run.cycles + 1, np.int64)
    np.add.at(change, run.start[which], 1)
    np.add.at(change, run.finish[which] + 1, -1)
    return np.cumsum(change[:-1]) > 0
