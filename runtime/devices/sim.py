"""The simulated accelerator: every cycle, and the numbers too."""

from __future__ import annotations

import numpy as np

from vdla.isa.config import Config
from vdla.isa.program import Program
from vdla.runtime.devices.base import DeviceResult, Dram
from vdla.sim.machine import simulate


class SimDevice:
    """Runs programs on the cycle simulator, memory model and all."""

    name = "sim"

    def __init__(self, config: Config, *, numerics: bool = True) -> None:
        self.config, self.numerics = config, numerics
        self.config_hash: str | None = config.hash

    def run(self, program: bytes, dram: Dram) -> DeviceResult:
        """Places the stream in DRAM, as a driver would, and runs it to FINISH."""
        loaded = Program.from_bytes(program, self.config)
        stream = np.frombuffer(loaded.stream(), np.uint8)
        dram[loaded.base : loaded.base + stream.size] = stream
        run = simulate(
            self.config, loaded.instructions, dram, loaded.base, numerics=self.numerics
        )
        return DeviceResult(run.cycles, run)
