"""Dependency tokens.

An instruction starts when every token it pops is there and every queue it will push to has a free
slot: the slot is reserved at the start, so that finishing never waits.
"""

from __future__ import annotations

from vdla.sim.compiled import inline
from vdla.sim.stream import POPS, PUSHES
from vdla.sim.timing.state import Machine, Tables


@inline
def tokens_allow(m: Machine, t: Tables, row: int, engine: int) -> bool:
    """Whether the tokens that an instruction pops are there, and slots for those it will push."""
    for side in range(len(t.variant.sides)):
        if m.tokens.available[m.settings.pops[engine, side]] < t.rows[row, POPS[side]]:
            return False
        if m.tokens.free[m.settings.pushes[engine, side]] < t.rows[row, PUSHES[side]]:
            return False
    return True


@inline
def pop(m: Machine, t: Tables, row: int, engine: int) -> None:
    """Takes the tokens of a starting instruction, and reserves the slots of those it will push."""
    m.tokens.moved = 1
    for side in range(len(t.variant.sides)):
        queue = m.settings.pops[engine, side]
        m.tokens.available_next[queue] -= t.rows[row, POPS[side]]
        m.tokens.free_next[queue] += t.rows[row, POPS[side]]
        m.tokens.free_next[m.settings.pushes[engine, side]] -= t.rows[row, PUSHES[side]]


@inline
def push(m: Machine, t: Tables, row: int, engine: int) -> None:
    """Gives the tokens of a finishing instruction."""
    m.tokens.moved = 1
    for side in range(len(t.variant.sides)):
        m.tokens.available_next[m.settings.pushes[engine, side]] += t.rows[row, PUSHES[side]]


@inline
def commit_tokens(m: Machine, t: Tables) -> None:
    """Makes this cycle's pops and pushes visible."""
    if m.tokens.moved == 0:
        return
    m.tokens.moved = 0
    for queue in range(len(t.variant.queues)):
        m.tokens.available[queue] = m.tokens.available_next[queue]
        m.tokens.free[queue] = m.tokens.free_next[queue]
