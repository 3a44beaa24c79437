"""The core's units that its parts connect. Scratchpads and queues belong to a part each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vdla.hw.compute import Compute
from vdla.hw.counters import Counters
from vdla.hw.csr import Csr
from vdla.hw.dma import Dma
from vdla.hw.fetch import Fetch
from vdla.hw.load import Load
from vdla.hw.queue import CommandQueue
from vdla.hw.store import Store
from vdla.isa.ring import Engine

Queues = Mapping[Engine, CommandQueue]  # one in front of each engine


@dataclass(frozen=True)
class Units:
    """The registers, the DMA, the counters, fetch and the engines."""

    csr: Csr
    dma: Dma
    counters: Counters
    fetch: Fetch
    load: Load
    compute: Compute
    vector: Compute | None  # if the config has one
    store: Store

    @property
    def engines(self) -> dict[Engine, Load | Compute | Store]:
        """The units that execute instructions, in ring order."""
        vector = {} if self.vector is None else {Engine.VECTOR: self.vector}
        return {
            Engine.LOAD: self.load,
            Engine.COMPUTE: self.compute,
            **vector,
            Engine.STORE: self.store,
        }

    @property
    def alu(self) -> Compute:
        """The engine that executes ALU."""
        return self.compute if self.vector is None else self.vector
