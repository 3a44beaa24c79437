"""Dependency tokens.

An instruction starts when every token it pops is there and every queue it will push to has a free
slot: the slot is reserved at the start, so that finishing never waits.
"""

from __future__ import annotations

from vdla.isa.instructions import Load
from vdla.sim.compiled import inline
from vdla.sim.stream import column
from vdla.sim.timing.state import Machine, Tables

# The flags are in the columns every instruction class shares.
_POP_PREV, _POP_NEXT = column(Load, "pop_prev"), column(Load, "pop_next")
_PUSH_PREV, _PUSH_NEXT = column(Load, "push_prev"), column(Load, "push_next")


@inline
def tokens_allow(m: Machine, t: Tables, row: int, engine: int) -> bool:
    """Whether the tokens that an instruction pops are there, and slots for those it will push."""
    return bool(
        m.tokens.available[2 * engine] >= t.rows[row, _POP_PREV]
        and m.tokens.available[2 * engine + 1] >= t.rows[row, _POP_NEXT]
        and m.tokens.free[_queue_to_prev(engine)] >= t.rows[row, _PUSH_PREV]
        and m.tokens.free[_queue_to_next(engine)] >= t.rows[row, _PUSH_NEXT]
    )


@inline
def pop(m: Machine, t: Tables, row: int, engine: int) -> None:
    """Takes the tokens of a starting instruction, and reserves the slots of those it will push."""
    from_prev, from_next = 2 * engine, 2 * engine + 1
    m.tokens.available_next[from_prev] -= t.rows[row, _POP_PREV]
    m.tokens.free_next[from_prev] += t.rows[row, _POP_PREV]
    m.tokens.available_next[from_next] -= t.rows[row, _POP_NEXT]
    m.tokens.free_next[from_next] += t.rows[row, _POP_NEXT]
    m.tokens.free_next[_queue_to_prev(engine)] -= t.rows[row, _PUSH_PREV]
    m.tokens.free_next[_queue_to_next(engine)] -= t.rows[row, _PUSH_NEXT]


@inline
def push(m: Machine, t: Tables, row: int, engine: int) -> None:
    """Gives the tokens of a finishing instruction."""
    m.tokens.available_next[_queue_to_prev(engine)] += t.rows[row, _PUSH_PREV]
    m.tokens.available_next[_queue_to_next(engine)] += t.rows[row, _PUSH_NEXT]


@inline
def commit_tokens(m: Machine) -> None:
    """Makes this cycle's pops and pushes visible."""
    for queue in range(6):
        m.tokens.available[queue] = m.tokens.available_next[queue]
        m.tokens.free[queue] = m.tokens.free_next[queue]


@inline
def _queue_to_prev(engine: int) -> int:
    """The queue that the engine before pops as "from next"."""
    return 2 * ((engine + 2) % 3) + 1


@inline
def _queue_to_next(engine: int) -> int:
    """The queue that the engine after pops as "from prev"."""
    return 2 * ((engine + 1) % 3)
