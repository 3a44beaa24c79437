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
    """Numbers of the instructions that last wrote and read each entry, per user.

    Users are engines, each with numbers of its own, or one for a whole stream. DRAM is counted in
    words of ``port_bytes``.
    """

    def __init__(
        self, addresses: Mapping[str, int], dram_bytes: int, config: Config, users: int = 1
    ) -> None:
        self.addresses, self.unit, self.users = addresses, config.port_bytes, users
        depths = {b: depth(scope, config) for scope, b in BUFFER_OF_SCOPE.items()}
        depths["uop"] = config.depth("uop")
        # [WROTE or READ, user, entry]
        self.spaces = {b: np.full((2, users, n), NEVER, np.int32) for b, n in depths.items()}
        words = ceil_div(dram_bytes, self.unit) + 1
        self.dram = np.full((2, users, words), NEVER, np.int32)
        self._seen: tuple[Op | None, list[NDArray[np.int32]]] = None, []

    def lasts(self, op: Op) -> list[list[int]]:
        """For each access of an instruction, per user, the last that conflicts with it."""
        views = zip(op.accesses, self._views(op), strict=True)
        return [_conflicts(access.write, view) for access, view in views]

    def last(self, op: Op) -> int:
        """The last instruction of any user that conflicts with one; NEVER where none does."""
        return max((max(numbers) for numbers in self.lasts(op)), default=NEVER)

    def mark(self, op: Op, number: int, user: int = 0) -> None:
        """Notes what an instruction writes and reads."""
        for access, view in zip(op.accesses, self._views(op), strict=True):
            view[WROTE if access.write else READ, user, ...] = number

    def _views(self, op: Op) -> list[NDArray[np.int32]]:
        """The entries of each access: an instruction is marked right after it was asked about."""
        seen, views = self._seen
        if seen is not op:
            views = [self._view(access) for access in op.accesses]
            self._seen = op, views
        return views

    def _view(self, access: Access) -> NDArray[np.int32]:
        """The touched entries of their table: [WROTE or READ, user, ...]."""
        if access.space in self.spaces:
            table, start, dims = self.spaces[access.space], access.start, access.dims
        else:  # bytes of a DRAM tensor, in whole port words
            table = self.dram
            start = (self.addresses[access.space] + access.start) // self.unit
            *outer, (size, _) = access.dims
            scaled = ((n, step // self.unit) for n, step in outer)
            dims = (*scaled, (ceil_div(size, self.unit), 1))
        kind, user, entry = table.strides
        shape = (2, self.users, *(n for n, _ in dims))
        strides = (kind, user, *(step * entry for _, step in dims))
        return np.ndarray(shape, np.int32, table, start * entry, strides)


def _conflicts(write: bool, view: NDArray[np.int32]) -> list[int]:
    """Per user, the last instruction that conflicts: a write, and for a write a read too."""
    if write:
        last = view.max(axis=(0, *range(2, view.ndim)))
    else:
        last = view[WROTE].max(axis=tuple(range(1, view.ndim - 1)))
    return [int(number) for number in last]
