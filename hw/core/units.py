"""The core's units that its parts connect. Scratchpads and queues belong to a part each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from amaranth.lib.wiring import Component

from vdla.hw.compute import Compute
from vdla.hw.counters import Counters
from vdla.hw.csr import Csr
from vdla.hw.dma import Dma
from vdla.hw.fetch import Fetch
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
    Engine.VECTOR: partial(Compute, engine=Engine.VECTOR),
    Engine.STORE: Store,
}


def engine_units(config: Config) -> dict[Engine, Unit]:
    """The units that are the engines of a config, in ring order."""
    return {engine: MAKERS[engine](config) for engine in engines(config)}


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
    def vector(self) -> Compute | None:
        """VECTOR, if the config has it."""
        return cast(Compute | None, self.engines.get(Engine.VECTOR))

    @property
    def store(self) -> Store:
        """STORE."""
        return cast(Store, self.engines[Engine.STORE])

    @property
    def alu(self) -> Compute:
        """The engine that executes ALU."""
        return self.compute if self.vector is None else self.vector
