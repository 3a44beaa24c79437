"""The memories on chip, a row each: what a LOAD or STORE names, and what an entry of it is.

ACC8 is ACC seen through int8. Rows of memories that only some configs have are in ``isa/options``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from vdla.isa.rows import Row

if TYPE_CHECKING:
    from vdla.isa.config import Config


class Mem(Row):
    """Memory that a LOAD or STORE addresses on chip.

    Attributes:
        buffer: the physical buffer, as ``Config.depth`` names it.
        size: the config's parameter that has the buffer's bytes.
        entry: the bytes of one entry in DRAM, of a config.
        results: number of results in an entry, which LOAD writes one a cycle, of a config; 0 where
            it writes the beats as they come.
    """

    buffer: str
    size: str
    entry: Callable[[Config], int]
    results: Callable[[Config], int]

    @property
    def has_own_buffer(self) -> bool:
        """Whether it isn't another memory in another form, as ACC8 is ACC."""
        return self.buffer == self.name.lower()

    @classmethod
    def define(
        cls,
        number: int,
        name: str,
        size: str,
        entry: Callable[[Config], int],
        *,
        buffer: str = "",
        results: Callable[[Config], int] = lambda config: 0,
    ) -> Self:
        """Adds the row of a memory; its buffer has its own name in small letters if no other."""
        buffer = buffer or name.lower()
        return cls.add(number, name, buffer=buffer, size=size, entry=entry, results=results)


Mem.define(0, "INP", "inp_bytes", lambda config: config.inp_entry)
Mem.define(1, "WGT", "wgt_bytes", lambda config: config.wgt_entry)
Mem.define(2, "ACC", "acc_bytes", lambda config: config.acc_entry)
Mem.define(3, "ACC8", "acc_bytes", lambda config: config.out_entry, buffer="acc")
Mem.define(4, "UOP", "uop_bytes", lambda config: config.uop_entry * config.uops_per_word)
