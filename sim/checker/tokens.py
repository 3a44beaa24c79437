"""Token and command queues as the checker runs them: which instruction can start next.

An instruction starts when its command queue holds it, every token that it pops is there and every
queue that it pushes to has a free slot. Fetch puts instructions into the command queues in program
order, and stands while the next one's is full; it always gets its beats in the end, since its
buffer has room for a burst beside any part of an instruction (``fetch_buffer_beats``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vdla.isa.config import Config
from vdla.isa.ring import Engine, ring_of
from vdla.sim.compiled import compiled, inline
from vdla.sim.stream import POPS, PUSHES, Rows, Stream, token_queues


class Queues(NamedTuple):
    """The command queues and token queues in front of a program's instructions."""

    rows: Rows
    order: Rows  # [engine, n] the row of its n-th instruction
    engine_of: Rows  # [opcode]
    pops: Rows  # [engine, side] the token queue that it pops
    pushes: Rows  # [engine, side] the one that it pushes to
    limit: int  # tokens that a queue holds
    commands: int  # instructions that wait in front of an engine
    issued: Rows  # [engine]
    started: Rows  # [engine]
    pushed: Rows  # [token queue]
    popped: Rows  # [token queue]


def make_queues(stream: Stream, config: Config) -> Queues:
    """Empty queues of a config's sizes in front of a stream."""
    tokens = len(ring_of(config).token_queues)
    return Queues(
        rows=stream.rows,
        order=stream.order,
        engine_of=stream.engine_of,
        pops=token_queues(config, "pop"),
        pushes=token_queues(config, "push"),
        limit=token_limit(stream, config),
        commands=config.command_queue,
        issued=np.zeros(len(Engine), np.int64),
        started=np.zeros(len(Engine), np.int64),
        pushed=np.zeros(tokens, np.int64),
        popped=np.zeros(tokens, np.int64),
    )


def token_limit(stream: Stream, config: Config) -> int:
    """Tokens that a queue holds; no program has more than it has instructions."""
    return min(config.token_queue, len(stream.instructions))


@compiled("checker")
def run_tokens(q: Queues) -> None:
    """Starts instructions as long as one can."""
    dispatched = 0
    while True:
        dispatched = dispatch(q, dispatched)
        engine = first_ready(q)
        if engine < 0:
            return
        row = q.order[engine, q.started[engine]]
        q.started[engine] += 1
        for side in range(len(POPS)):
            q.popped[q.pops[engine, side]] += q.rows[row, POPS[side]]
            q.pushed[q.pushes[engine, side]] += q.rows[row, PUSHES[side]]


@inline
def dispatch(q: Queues, dispatched: int) -> int:
    """Fills the command queues as far as they have room; how many instructions are dispatched."""
    while dispatched < q.rows.shape[0] - 1:
        engine = q.engine_of[q.rows[dispatched, 0]]
        if q.issued[engine] - q.started[engine] >= q.commands:
            break
        q.issued[engine] += 1
        dispatched += 1
    return dispatched


@inline
def first_ready(q: Queues) -> int:
    """The engine whose next instruction can start; of several, the earliest in the program."""
    best, index = -1, q.rows.shape[0]
    for engine in range(q.order.shape[0]):
        if q.started[engine] < q.issued[engine]:
            row = q.order[engine, q.started[engine]]
            if row < index and _tokens_allow(q, row, engine):
                best, index = engine, row
    return best


@inline
def _tokens_allow(q: Queues, row: int, engine: int) -> bool:
    """Whether the tokens that an instruction pops are there, and slots for those it will push."""
    for side in range(len(POPS)):
        if q.rows[row, POPS[side]]:
            queue = q.pops[engine, side]
            if q.pushed[queue] == q.popped[queue]:
                return False
        if q.rows[row, PUSHES[side]]:
            queue = q.pushes[engine, side]
            if q.pushed[queue] - q.popped[queue] == q.limit:
                return False
    return True
