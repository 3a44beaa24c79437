"""The vector engine: VECTOR executes ALU, beside COMPUTE's GEMM.

It is an engine of micro-ops (``hw/compute``). Claims on ACC's ports, the stage LOOK and a port at
LOAD follow from the ring, where ALU has another engine than GEMM.
"""

from __future__ import annotations

from vdla.hw.compute import Compute
from vdla.hw.core.units import EngineHooks
from vdla.isa.options.vector import OPTIONS, VECTOR


class VectorEngine(EngineHooks):
    """VECTOR."""

    option, engine = OPTIONS[0], VECTOR

    def make(self) -> Compute:
        """An engine of micro-ops."""
        return Compute(self.config, self.engine)
