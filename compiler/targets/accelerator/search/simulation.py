"""Cycles of a tile, in one of the workers.

A candidate is compiled, its stream proved sound by the static checker, and only then run: here on
the cycle simulator, timing alone; ``boards/meter.py`` runs it on a board.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from vdla.compiler.search.measurer import Meter
from vdla.compiler.search.outcomes import Outcome
from vdla.compiler.targets.accelerator.codegen.allocate import AllocationError
from vdla.compiler.targets.accelerator.codegen.leaf import CodegenError
from vdla.compiler.targets.accelerator.operators.template import Operator, Tile
from vdla.compiler.targets.accelerator.standalone import LayerProgram, layer_program
from vdla.isa.config import Config
from vdla.isa.instructions import Finish
from vdla.sim.checker import check
from vdla.sim.machine import SimulationError, simulate, warm_up


@dataclass(frozen=True)
class Cycles(Outcome):
    """An outcome with the cycles that a layer takes by itself, from cold buffers."""

    cycles: int | None = None

    @property
    def cost(self) -> float:
        """The cycles; infinity where there are none."""
        return float("inf") if self.cycles is None else float(self.cycles)


@dataclass(frozen=True, eq=False)
class TileMeter(Meter[Tile, Cycles]):
    """Meter of an operator's tiles on a config's accelerator: on the board of that name, or without
    a name on the simulator.

    The operator's constants are zeros: no cycle depends on them, and they take few bytes on the way
    to other processes.
    """

    MEMORY: ClassVar[int | None] = 8 << 30

    operator: Operator
    config: Config
    board: str = ""

    @abstractmethod
    def run(self, built: LayerProgram) -> Cycles:
        """The cycles of a program that is sound, or why there are none.

        Raises:
            AllocationError, SimulationError: the program can't be run at all.
        """

    def __post_init__(self) -> None:
        zeros = {name: np.zeros_like(array) for name, array in self.operator.constants.items()}
        object.__setattr__(self, "operator", replace(self.operator, constants=zeros))

    def measure(self, candidate: Tile) -> Cycles:
        """Compiles, checks and times one tile, alone and cold."""
        try:
            built = layer_program(self.operator, candidate, self.config)
            findings = built.check()
            if findings:
                first = findings[0]
                return Cycles("illegal", f"{first.kind} at {first.index}: {first.text}")
            return self.run(built)
        except (AllocationError, CodegenError, SimulationError) as error:
            return Cycles("illegal", str(error))

    def lost(self, status: str, note: str) -> Cycles:
        """The outcome of a tile that no answer came for."""
        return Cycles(status, note)

    def warm_up(self) -> None:
        """Has the checker's loops compiled."""
        check(self.config, [Finish()])


@dataclass(frozen=True, eq=False)
class Simulation(TileMeter):
    """Meter of an operator's tiles on the cycle simulator."""

    def run(self, built: LayerProgram) -> Cycles:
        """The cycles that the simulator counts.

        Raises:
            SimulationError: the program doesn't end, or stops at a fault.
        """
        stream, base = built.program.instructions, built.program.base
        result = simulate(self.config, stream, built.dram, base, numerics=False)
        return Cycles("ok", cycles=result.cycles)

    def warm_up(self) -> None:
        """Has the simulator's and the checker's loops compiled."""
        warm_up(self.config)
        super().warm_up()
