"""Dependency tokens and the start of instructions.

An instruction starts when its queue holds it, every token it pops is there, and every queue it will
push to has a free slot: the slot is reserved at the start, so that finishing never waits.
"""

from __future__ import annotations

from vdla.isa.instructions import Load
from vdla.sim.stream import Rows, column, inline
from vdla.sim.timing.memory import Registers
from vdla.sim.timing.registers import (
    AVAILABLE,
    AVAILABLE_NEXT,
    DRAIN,
    F_TOTAL,
    FETCH_WAIT,
    FREE,
    FREE_NEXT,
    ISSUED,
    STARTED,
    TOKEN,
)

# The flags are in the columns every instruction class shares.
_POP_PREV, _POP_NEXT = column(Load, "pop_prev"), column(Load, "pop_next")
_PUSH_PREV, _PUSH_NEXT = column(Load, "push_prev"), column(Load, "push_next")


@inline
def can_start(s: Registers, rows: Rows, order: Rows, engine: int) -> bool:
    """Whether the engine's next instruction is there, with its tokens and its token slots."""
    if s[STARTED + engine] == s[ISSUED + engine]:
        return False
    row = order[engine, s[STARTED + engine]]
    to_prev, to_next = _queue_to_prev(engine), _queue_to_next(engine)
    return bool(
        s[AVAILABLE + 2 * engine] >= rows[row, _POP_PREV]
        and s[AVAILABLE + 2 * engine + 1] >= rows[row, _POP_NEXT]
        and s[FREE + to_prev] >= rows[row, _PUSH_PREV]
        and s[FREE + to_next] >= rows[row, _PUSH_NEXT]
    )


@inline
def start(s: Registers, rows: Rows, order: Rows, engine: int, now: int, begun: Rows) -> int:
    """Starts the engine's next instruction: pops its tokens, reserves its slots."""
    row = order[engine, s[STARTED + engine]]
    s[STARTED + engine] += 1
    from_prev, from_next = 2 * engine, 2 * engine + 1
    s[AVAILABLE_NEXT + from_prev] -= rows[row, _POP_PREV]
    s[FREE_NEXT + from_prev] += rows[row, _POP_PREV]
    s[AVAILABLE_NEXT + from_next] -= rows[row, _POP_NEXT]
    s[FREE_NEXT + from_next] += rows[row, _POP_NEXT]
    s[FREE_NEXT + _queue_to_prev(engine)] -= rows[row, _PUSH_PREV]
    s[FREE_NEXT + _queue_to_next(engine)] -= rows[row, _PUSH_NEXT]
    begun[row] = now
    return int(row)


@inline
def push(s: Registers, rows: Rows, row: int, engine: int) -> None:
    """Gives the tokens of a finishing instruction."""
    s[AVAILABLE_NEXT + _queue_to_prev(engine)] += rows[row, _PUSH_PREV]
    s[AVAILABLE_NEXT + _queue_to_next(engine)] += rows[row, _PUSH_NEXT]


@inline
def commit(s: Registers) -> None:
    """Makes this cycle's pops and pushes visible."""
    for queue in range(6):
        s[AVAILABLE + queue] = s[AVAILABLE_NEXT + queue]
        s[FREE + queue] = s[FREE_NEXT + queue]


@inline
def idle_cause(s: Registers, engine: int) -> int:
    """Why an engine with nothing in flight does nothing."""
    if s[STARTED + engine] != s[ISSUED + engine]:
        return TOKEN
    issued = s[ISSUED] + s[ISSUED + 1] + s[ISSUED + 2]
    return DRAIN if issued >= s[F_TOTAL] - 1 else FETCH_WAIT


@inline
def _queue_to_prev(engine: int) -> int:
    """The queue that the engine before pops as "from next"."""
    return 2 * ((engine + 2) % 3) + 1


@inline
def _queue_to_next(engine: int) -> int:
    """The queue that the engine after pops as "from prev"."""
    return 2 * ((engine + 1) % 3)
