"""On-chip addresses: nested allocations stack up, side by side ones share."""

from __future__ import annotations

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
    _place(func.body, dict.fromkeys(BUFFER_OF_SCOPE, 0), bases, config, func.name)
    return bases


def _place(
    stmt: Stmt, used: dict[str, int], bases: dict[Buffer, int], config: Config, name: str
) -> None:
    if isinstance(stmt, Alloc) and stmt.buffer.scope in BUFFER_OF_SCOPE:
        scope = stmt.buffer.scope
        limit = depth(scope, config)
        end = used[scope] + stmt.buffer.copies * entries(stmt.buffer, config)
        if end > limit:
            raise AllocationError(
                f"{name}: expected {BUFFER_OF_SCOPE[scope]} buffers within {limit} entries "
                f"(config {config.name}), found {end} with {stmt.buffer.name}; "
                "split its loops and compute_at a smaller tile"
            )
        bases[stmt.buffer] = used[scope] + lead(stmt.buffer, config)
        used = {**used, scope: end}
    for child in stmt_children(stmt):
        _place(child, used, bases, config, name)
