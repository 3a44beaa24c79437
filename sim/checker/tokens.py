"""Token and command queues as the checker runs them: which instruction can start next.

An instruction starts when its command queue holds it, every token that it pops is there and every
queue that it pushes to has a free slot. Fetch puts instructions into the command queues in program
order, and stands while the next one's is full; it always gets its beats in the end, since its
buffer has room for a burst beside any part of an instruction (``fetch_buffer_beats``).
"""

from __future__ import annotations

import numpy as np

from vdla.isa.instructions import Load
from vdla.sim.compiled import inline
from vdla.sim.stream import ENGINE_OF, Rows, Stream, column

# The columns of pop_next and push_next are the ones after these.
POP_PREV, PUSH_PREV = column(Load, "pop_prev"), column(Load, "push_prev")

# Queue 2e holds what engine e pops from its prev, queue 2e + 1 what it pops from its next.
TO_PREV = np.array([2 * ((e + 2) % 3) + 1 for e in range(3)], np.int64)
TO_NEXT = np.array([2 * ((e + 1) % 3) for e in range(3)], np.int64)


def token_limit(stream: Stream) -> int:
    """Tokens that a queue holds; no program has more than it has instructions."""
    return min(stream.config.token_queue, len(stream.instructions))


def run_tokens(rows: Rows, order: Rows, limit: int, queue: int, started: Rows) -> None:
    """Starts instructions as long as one can; ``started`` counts per engine.

    It isn't compiled: fetching it from the cache would take longer than it runs, 4 µs an
    instruction.

    Args:
        rows: the program.
        order: [engine, n] the row of its n-th instruction.
        limit: tokens that a queue holds.
        queue: instructions that wait in front of an engine.
        started: zeros.
    """
    dispatched = 0
    issued = np.zeros(3, np.int64)
    pushed, popped = np.zeros(6, np.int64), np.zeros(6, np.int64)
    while True:
        dispatched = dispatch(rows, dispatched, issued, started, queue)
        engine = first_ready(rows, order, issued, started, pushed, popped, limit)
        if engine < 0:
            return
        row = order[engine, started[engine]]
        started[engine] += 1
        for side in range(2):
            popped[2 * engine + side] += rows[row, POP_PREV + side]
        pushed[TO_PREV[engine]] += rows[row, PUSH_PREV]
        pushed[TO_NEXT[engine]] += rows[row, PUSH_PREV + 1]


@inline
def dispatch(rows: Rows, dispatched: int, issued: Rows, started: Rows, queue: int) -> int:
    """Fills the command queues as far as they have room; how many instructions are dispatched."""
    while dispatched < rows.shape[0] - 1:
        engine = ENGINE_OF[rows[dispatched, 0]]
        if issued[engine] - started[engine] >= queue:
            break
        issued[engine] += 1
        dispatched += 1
    return dispatched


@inline
def first_ready(
    rows: Rows, order: Rows, issued: Rows, started: Rows, pushed: Rows, popped: Rows, limit: int
) -> int:
    """The engine whose next instruction can start; of several, the earliest in the program."""
    best, index = -1, rows.shape[0]
    for engine in range(3):
        if started[engine] < issued[engine]:
            row = order[engine, started[engine]]
            from_prev, from_next = 2 * engine, 2 * engine + 1
            to_prev, to_next = TO_PREV[engine], TO_NEXT[engine]
            if (
                row < index
                and pushed[from_prev] - popped[from_prev] >= rows[row, POP_PREV]
                and pushed[from_next] - popped[from_next] >= rows[row, POP_PREV + 1]
                and limit - (pushed[to_prev] - popped[to_prev]) >= rows[row, PUSH_PREV]
                and limit - (pushed[to_next] - popped[to_next]) >= rows[row, PUSH_PREV + 1]
            ):
                best, index = engine, row
    return best
