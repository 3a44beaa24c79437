"""On-chip addresses: nested allocations stack up, side by side ones share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vdla.compiler.targets.accelerator.description.memory import (
    BUFFER_OF_SCOPE,
    depth,
    entries,
    lead,
)
from vdla.compiler.tir.ir import Alloc, Buffer, PrimFunc, Stmt
from vdla.compiler.tir.visitor import stmt_children
from vdla.isa.config import Config
from vdla.support.errors import UserError


class AllocationError(UserError):
    """A buffer can't hold what a schedule puts into it."""


def allocate(func: PrimFunc, config: Config) -> dict[Buffer, int]:
    """The first entry of every allocated buffer's first copy.

    Raises:
        AllocationError: the live buffers of a scope exceed it; says which and by how much.
    """
    bases: dict[Buffer, int] = {}
    for buffer, start, end in _placed(func.body, dict.fromkeys(BUFFER_OF_SCOPE, 0), config):
        limit = depth(buffer.scope, config)
        if end > limit:
            raise AllocationError(
                f"{func.name}: expected {BUFFER_OF_SCOPE[buffer.scope]} buffers within {limit} "
                f"entries (config {config.name}), found {end} with {buffer.name}; "
                "split its loops and compute_at a smaller tile"
            )
        bases[buffer] = start + lead(buffer, config)
    return bases


def footprint(func: PrimFunc, config: Config) -> dict[str, int]:
    """Entries of each scope that ``allocate`` needs, however many the config has."""
    result = dict.fromkeys(BUFFER_OF_SCOPE, 0)
    for buffer, _, end in _placed(func.body, dict(result), config):
        result[buffer.scope] = max(result[buffer.scope], end)
    return result


def _placed(
    stmt: Stmt, used: Mapping[str, int], config: Config
) -> Iterator[tuple[Buffer, int, int]]:
    """Buffers in a statement with the first entry of each and the one behind its last; ``used``
    are the entries that those around it take."""
    if isinstance(stmt, Alloc) and stmt.buffer.scope in BUFFER_OF_SCOPE:
        start = used[stmt.buffer.scope]
        end = start + stmt.buffer.copies * entries(stmt.buffer, config)
        yield stmt.buffer, start, end
        used = {**used, stmt.buffer.scope: end}
    for child in stmt_children(stmt):
        yield from _placed(child, used, config)
