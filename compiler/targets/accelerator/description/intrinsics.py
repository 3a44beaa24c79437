"""Every operation of the ISA as a tensor intrinsic: what it does to one vector, and how it is made.

``tensorize`` matches these behaviours and proves that operands stay within ``ranges``; the
interpreter runs the behaviours; code generation follows ``lowering``. Widths, and so the ranges,
come from ``isa``. A property test holds each behaviour against the simulator and the RTL.

Rows stand with others of their instruction (``transfers``, ``gemm``, ``alu``), those that only some
configs have in the files of their options; ``print(ins)`` shows those of a config.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from vdla.compiler.targets.accelerator.description.alu import OPERATIONS
from vdla.compiler.targets.accelerator.description.declared import Declared
from vdla.compiler.targets.accelerator.description.gemm import PRODUCTS
from vdla.compiler.targets.accelerator.description.transfers import LOADS, STORES
from vdla.compiler.tir.ir.intrin import TensorIntrin
from vdla.isa.config import Config

ROWS: list[Declared] = [*LOADS, *PRODUCTS, *OPERATIONS, *STORES]


def add_intrinsics(*rows: Declared, before: str = "") -> None:
    """Adds rows, ``before`` the one of a name or at the end: of equally cheap intrinsics that
    compute the same, ``tensorize`` takes the first.

    Raises:
        ValueError: there is no row of that name, or one already of a name that is added.
    """
    names = [row.name for row in ROWS]
    if known := {row.name for row in rows}.intersection(names):
        raise ValueError(f"intrinsics: expected other names than {', '.join(sorted(known))}")
    at = names.index(before) if before else len(names)
    ROWS[at:at] = rows


class Intrinsics:
    """The tensor intrinsics of one config, by name: ``ins.gemm_zero`` or ``ins["gemm_zero"]``;
    iterating gives all of them but those that its instruction set lacks.

    A vector has ``block_in`` lanes in ``vdla.inp`` and ``block_out`` in ``vdla.acc``; an entry of
    ``vdla.wgt`` is ``block_out`` × ``block_in`` weights.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._rows = {row.name: row for row in ROWS}
        self._made: dict[str, TensorIntrin] = {}

    def __getitem__(self, name: str) -> TensorIntrin:
        if name not in self._made:
            self._made.setdefault(name, self._rows[name].make(name, self.config))
        return self._made[name]

    def __getattr__(self, name: str) -> TensorIntrin:
        if name.startswith("_") or name not in self._rows:
            raise AttributeError(f"{type(self).__name__}: expected an intrinsic, found {name}")
        return self[name]

    def __iter__(self) -> Iterator[TensorIntrin]:
        return (self[row.name] for row in self._present())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._rows]

    def __str__(self) -> str:
        return "\n".join(f"{row.name:16} {row.words}" for row in self._present())

    def _present(self) -> Iterator[Declared]:
        return (row for row in self._rows.values() if row.is_of(self.config))


@lru_cache
def intrinsics(config: Config) -> Intrinsics:
    """The tensor intrinsics of a config."""
    return Intrinsics(config)
