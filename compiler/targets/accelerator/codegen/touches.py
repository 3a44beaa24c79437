"""Who touched each entry of each memory last: what an instruction must come after."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.codegen.op import Access, Op
from vdla.compiler.targets.accelerator.description.memory import BUFFER_OF_SCOPE, depth
from vdla.isa.config import Config
from vdla.support.numbers import ceil_div

NEVER = -1
WROTE, READ = 0, 1


class Touches:
    """Numbers of the instructions of a stream that last wrote and read each entry.

    DRAM is counted in words of ``port_bytes``.
    """

    def __init__(self, addresses: Mapping[str, int], dram_bytes: int, config: Config) -> None:
        self.addresses, self.unit = addresses, config.port_bytes
        depths = {b: depth(scope, config) for scope, b in BUFFER_OF_SCOPE.items()}
        depths["uop"] = config.depth("uop")
        # [WROTE or READ, entry]
        self.spaces = {b: np.full((2, n), NEVER, np.int32) for b, n in depths.items()}
        self.dram = np.full((2, ceil_div(dram_bytes, self.unit) + 1), NEVER, np.int32)

    def last(self, op: Op) -> int:
        """The last instruction that conflicts with one: that wrote what it touches, or read what
        it writes; NEVER where none does."""
        views = ((access.write, self._view(access)) for access in op.accesses)
        return max((int((v if write else v[WROTE]).max()) for write, v in views), default=NEVER)

    def mark(self, op: Op, number: int) -> None:
        """Notes what an instruction writes and reads."""
        for access in op.accesses:
            self._view(access)[WROTE if access.write else READ, ...] = number

    def _view(self, access: Access) -> NDArray[np.int32]:
        """The touched entries of their table: [WROTE or READ, ...]."""
        if access.space in self.spaces:
            table, start, dims = self.spaces[access.space], access.start, access.dims
        else:  # bytes of a DRAM tensor, in whole port words
            table = self.dram
            start = (self.addresses[access.space] + access.start) // self.unit
            *outer, (size, _) = access.dims
            scaled = ((n, step // self.unit) for n, step in outer)
            dims = (*scaled, (ceil_div(size, self.unit), 1))
        kind, entry = table.strides
        shape = (2, *(n for n, _ in dims))
        strides = (kind, *(step * entry for _, step in dims))
        return np.ndarray(shape, np.int32, table, start * entry, strides)
