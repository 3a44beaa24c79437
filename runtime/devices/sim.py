"""The simulated accelerator: every cycle, and the numbers too."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.dram import Dram, Ranges, host_image, place
from vdla.sim.counts import Counts, counts_of
from vdla.sim.machine import Run, run_cycles, run_functional, warm_up
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
        return _Loaded(Stream.of(self.config, loaded.instructions, loaded.base), dram, self).run


class _Loaded:
    """A program in front of its DRAM. Its cycles are counted again only where its micro-ops have
    changed since: nothing else in DRAM has a part in them."""

    def __init__(self, stream: Stream, dram: Dram, device: SimDevice) -> None:
        self.stream, self.dram, self.numerics = stream, dram, device.numerics
        self.counted: tuple[bytes, Run, Callable[[], Counts]] | None = None

    def run(self) -> DeviceResult:
        """Runs the program once."""
        micro_ops = self.stream.micro_ops(self.dram)
        if self.counted is None or self.counted[0] != micro_ops:
            counted = run_cycles(self.stream, self.dram)
            shared = cache(partial(counts_of, self.stream, self.dram, counted))
            self.counted = micro_ops, counted, shared  # of which DRAM still has the micro-ops
        _, result, counts = self.counted
        if self.numerics:
            run_functional(self.stream, result.finish, self.dram)
        return DeviceResult(result.cycles, result, counts=counts)
