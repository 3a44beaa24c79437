"""Energy of programs: exact counts of events (``counts.py``) times a table of published figures.

An estimate is as good as its table, and no table is of an FPGA. So a figure is never without the
table's name. It is of what moves and computes: clocks, queues and leakage are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vdla.isa.config import Config
from vdla.isa.operations import AluOp, X
from vdla.sim.counts import Counts
from vdla.sim.energy.table import EnergyError, EnergyTable, load_table, table_names

__all__ = ["Energy", "EnergyError", "EnergyTable", "energy", "load_table", "table_names"]

PJ_PER_UJ = 1e6


@dataclass(frozen=True)
class Energy:
    """Energy in pJ by ``parts``: multiply-adds, the ALU, each memory, DRAM; of which ``table``.

    ``beyond`` are the buffers that are far smaller or larger than any of the table's.
    """

    table: str
    parts: Mapping[str, float]
    beyond: tuple[str, ...]

    @property
    def total_pj(self) -> float:
        """All parts together."""
        return sum(self.parts.values())

    @property
    def total_uj(self) -> float:
        """All parts together, in µJ."""
        return self.total_pj / PJ_PER_UJ


def energy(counts: Counts, config: Config, table: EnergyTable) -> Energy:
    """The energy of what was counted on a config, by a table.

    A lane's product of the ALU counts as one of 32 bits with an addition, whatever its operation.
    A memory counts as one, whatever RAMs hold copies of it.
    """
    parts = {
        "multiply-adds": counts.multiply_adds * table.events["multiply_add"],
        "alu": sum(n * _operation(name, table) for name, n in counts.operations.items()),
    }
    beyond: dict[str, None] = {}
    for access, count in counts.accesses.items():
        size = config.size(access.memory)
        each = table.access(size, access.bits, writes=access.writes)
        parts[access.memory] = parts.get(access.memory, 0.0) + count * each
        if table.is_far(size, access.bits):
            beyond[f"{access.memory} ({size:,} bytes, {access.bits} bits)"] = None
    moved = counts.loaded_bytes + counts.stored_bytes + counts.fetched_bytes
    parts["dram"] = 8 * moved * table.events["dram_bit"]
    return Energy(table.name, parts, tuple(beyond))


def _operation(name: str, table: EnergyTable) -> float:
    op = AluOp.named(name)
    if op.memory:  # whose energy is that of the memory
        return 0.0
    return table.events["add" if op.x is X.LATE else "multiply"]  # an accumulator is added to
