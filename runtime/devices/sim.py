"""The simulated accelerator: every cycle, and the numbers too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.dram import Dram, Ranges, host_image, place
from vdla.sim.counts import counts_of
from vdla.sim.machine import run_stream, warm_up
from vdla.sim.stream import Stream


class SimDevice:
    """Runs programs on the cycle simulator, memory model and all."""

    name = "sim"

    def __init__(self, config: Config, *, numerics: bool = True) -> None:
        self.config, self.numerics = config, numerics
        self.identity: Identity | None = Identity.of(config)

    def allocate(self, size: int, constants: bytes) -> Dram:
        """A DRAM image in the host's memory."""
        return host_image(size, constants)

    def load(
        self, program: bytes, dram: Dram, given: Ranges = (), wanted: Ranges = ()
    ) -> Callable[[], DeviceResult]:
        """Places the stream in DRAM, as a driver would, and lays it out for the simulator."""
        warm_up(self.config)
        loaded = place(self.name, program, self.config, dram)
        stream = Stream.of(self.config, loaded.instructions, loaded.base)

        def run() -> DeviceResult:
            result = run_stream(stream, dram, numerics=self.numerics)
            counts = partial(counts_of, stream, dram, result)  # DRAM still has the micro-ops
            return DeviceResult(result.cycles, result, counts=counts)

        return run
