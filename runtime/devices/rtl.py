"""The accelerator's RTL, compiled by Verilator: the same cycles and bytes as the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from vdla.isa.asm import format_instruction
from vdla.isa.config import Config
from vdla.isa.identity import Identity
from vdla.isa.instructions import instruction_bytes
from vdla.isa.ring import engines, numbered
from vdla.runtime.devices.base import DeviceResult
from vdla.runtime.dram import Dram, Ranges, host_image, place, whole_pages
from vdla.runtime.rtl.bench import Bench, Stopped
from vdla.runtime.rtl.build import build
from vdla.runtime.turns import Turns
from vdla.sim.machine import FaultError, Run, SimulationError, deadlock_report
from vdla.sim.stream import Stream


class RtlDevice:
    """Runs programs on the Verilated core, driven through its registers like a board.

    ``waves`` names an FST file that is written while the first program runs. Threads that share the
    device take turns, a program each.
    """

    name = "rtl"

    def __init__(self, config: Config, *, waves: Path | None = None) -> None:
        self.config, self.waves = config, waves
        self.identity: Identity | None = Identity.of(config)
        library = build(config, trace=waves is not None)
        self.bench, self._turns = Bench(config, library), Turns()

    def allocate(self, size: int, constants: bytes) -> Dram:
        """A DRAM image in the host's memory."""
        return host_image(size, constants)

    def load(
        self, program: bytes, dram: Dram, given: Ranges = (), wanted: Ranges = ()
    ) -> Callable[[], DeviceResult]:
        """Places the stream in DRAM, as a driver would."""
        loaded = place(self.name, program, self.config, dram)
        stream = Stream.of(self.config, loaded.instructions, loaded.base)
        size = whole_pages(dram.size)
        whole = dram if dram.size == size else np.zeros(size, np.uint8)

        def run() -> DeviceResult:
            if whole is not dram:
                whole[: dram.size] = dram
            with self._turns:
                result = self._run(stream, whole)
            if whole is not dram:
                dram[:] = whole[: dram.size]
            return DeviceResult(result.cycles, result)

        return run

    def _run(self, stream: Stream, dram: Dram) -> Run:
        rows = {engine: stream.engine(engine) for engine in numbered(self.config)}
        self.bench.clear()  # as the simulator: scratchpads hold zeros at a program's start
        waves, self.waves = self.waves, None
        if waves:
            self.bench.open_waves(waves)
        self.bench.attach(dram)
        try:
            stopped = self.bench.run(stream.base, [len(each) for each in rows.values()])
        finally:
            if waves:
                self.bench.close_waves()
        start, finish = np.zeros((2, len(stream.instructions)), np.int64)
        for engine in rows:
            start[rows[engine]], finish[rows[engine]] = (
                stopped.start[engine],
                stopped.finish[engine],
            )
        if stopped.fault:
            raise _fault_error(stream, stopped)
        if stopped.cycles == -1:
            raise SimulationError(deadlock_report(stream, start))
        start[-1] = finish[-1] = stopped.cycles - 1
        causes = {
            engine.name: {cause.name.lower(): n for cause, n in stopped.causes[engine].items()}
            for engine in engines(self.config)
        }
        return Run(self.config, stream.instructions, stopped.cycles, start, finish, causes)


def _fault_error(stream: Stream, stopped: Stopped) -> FaultError:
    index = (stopped.fault_instruction - stream.base) // instruction_bytes(stream.config)
    known = index < len(stream.instructions)
    text = format_instruction(stream.instructions[index]) if known else "no instruction"
    return FaultError(stopped.fault, index, stopped.cycles - 1, text)
