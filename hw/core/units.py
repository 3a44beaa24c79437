"""The core's units that its parts connect. Scratchpads and queues belong to a part each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

from amaranth.lib.wiring import Component

from vdla.hw.compute import Compute
from vdla.hw.counters import Counters
from vdla.hw.csr import Csr
from vdla.hw.dma import Dma
from vdla.hw.fetch import Fetch
from vdla.hw.hooks import Hooks, hooks_of
from vdla.hw.load import Load
from vdla.hw.queue import CommandQueue
from vdla.hw.store import Store
from vdla.isa.config import Config
from vdla.isa.ring import Engine, engines

Queues = Mapping[Engine, CommandQueue]  # one in front of each engine
Unit = Component  # an engine: it has a ``command``, its ``activity`` and a ``fault``

MAKERS: Mapping[Engine, Callable[[Config], Unit]] = {
    Engine.LOAD: Load,
    Engine.COMPUTE: Compute,
    Engine.STORE: Store,
}


class EngineHooks(Hooks):
    """Seam of the ring: an option that adds an engine makes its unit.

    The unit has the ports of a ``Unit``, and others as it needs: ``inp`` and ``inp_taken`` if the
    ring says that it writes INP.
    """

    engine: ClassVar[Engine]

    def make(self) -> Unit:
        """The engine's unit."""
        raise NotImplementedError


def engine_units(config: Config) -> dict[Engine, Unit]:
    """The units that are the engines of a config, in ring order."""
    added = {hook.engine: hook for hook in hooks_of(EngineHooks, config)}
    return {e: added[e].make() if e in added else MAKERS[e](config) for e in engines(config)}


@dataclass(frozen=True)
class Units:
    """The registers, the DMA, the counters, fetch and the engines."""

    csr: Csr
    dma: Dma
    counters: Counters
    fetch: Fetch
    engines: Mapping[Engine, Unit]  # in ring order

    @property
    def load(self) -> Load:
        """LOAD."""
        return cast(Load, self.engines[Engine.LOAD])

    @property
    def compute(self) -> Compute:
        """COMPUTE."""
        return cast(Compute, self.engines[Engine.COMPUTE])

    @property
    def pipelines(self) -> tuple[Compute, ...]:
        """The engines of micro-ops: COMPUTE, and the one that executes ALU if that is another."""
        return tuple(unit for unit in self.engines.values() if isinstance(unit, Compute))

    @property
    def store(self) -> Store:
        """STORE."""
        return cast(Store, self.engines[Engine.STORE])

    @property
    def alu(self) -> Compute:
        """The engine that executes ALU."""
        return next(unit for unit in self.pipelines if unit.micro_ops.alu)
