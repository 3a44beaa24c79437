"""A board whose processor shares its memory with the core, without the board.

The core's RTL, its AXI ports on a model of the processing system: registers over AXI4-Lite, DRAM
behind AXI4 with the config's latency and rate. Host and core see different copies of DRAM until
the driver flushes or invalidates, as behind a cache.
"""

from __future__ import annotations

import numpy as np

from vdla.isa.config import Config
from vdla.isa.registers import register
from vdla.runtime.board.transport import image_bytes
from vdla.runtime.dram import Dram, aligned_bytes
from vdla.runtime.rtl.bench import DRAM_BASE, Bench
from vdla.runtime.rtl.build import build

CLOCKS = 1 << 14  # that pass while the host looks at STATUS
STATUS = register("STATUS").offset


class VirtualAxiBoard:
    """A transport. ``errors`` are the byte addresses (from, to) of DRAM that bear bus errors."""

    def __init__(
        self,
        name: str,
        config: Config,
        memory_bytes: int,
        errors: tuple[int, int] = (0, 0),
    ) -> None:
        self.name, self.memory_bytes, self.errors = name, memory_bytes, errors
        self.bench = Bench(config, build(config))
        self.dram: Dram = np.zeros(0, np.uint8)

    def read(self, offset: int, count: int = 1) -> list[int]:
        """Registers one behind the other; time passes while STATUS is read."""
        if offset == STATUS:
            self.bench.advance(CLOCKS)
        return [self.bench.read_at(offset + 4 * i) for i in range(count)]

    def write(self, offset: int, value: int) -> None:
        """Writes a register."""
        self.bench.write_at(offset, value)

    def allocate(self, size: int) -> tuple[Dram, int]:
        """The host's copy of a new DRAM."""
        whole = image_bytes(self.name, size, self.memory_bytes)
        self.dram = aligned_bytes(whole)
        self.bench.attach(self.dram, errors=self.errors)
        return aligned_bytes(whole), DRAM_BASE

    def upload(self, image: Dram, start: int, stop: int) -> None:
        """Flushes the host's cache."""
        self.dram[start:stop] = image[start:stop]

    def release(self, image: Dram, start: int, stop: int) -> None:
        """Does nothing: this cache writes nothing back by itself."""

    def download(self, image: Dram, start: int, stop: int) -> None:
        """Invalidates it."""
        image[start:stop] = self.dram[start:stop]

    def close(self) -> None:
        """Frees the model."""
        self.bench.close()
