"""Causes of engines' cycles, numbers of instructions in flight, and levels of token queues."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from vdla.analysis.case import Outcome
from vdla.analysis.cases import MOST_TOKENS
from vdla.isa.config import Config
from vdla.isa.instructions import Alu, Gemm, Load
from vdla.isa.registers import Cause, counter
from vdla.isa.ring import Engine, TokenQueue, engines, ring_of
from vdla.sim.stream import Stream, column

LOADS = STORES = 8  # in flight at once: docs/timing.md, sections 4 and 6


def cause_goals(config: Config) -> Iterator[str]:
    """Every cause of every engine that can have it; all instructions in flight that may be."""
    impossible = _impossible(config)
    for engine, cause in product(engines(config), Cause):
        if (engine, cause) not in impossible:
            yield f"causes: {engine.name} {cause.name}"
    yield from (f"causes: {LOADS} LOADs in flight", f"causes: {STORES} STOREs in flight")


def _impossible(config: Config) -> set[tuple[Engine, Cause]]:
    """Causes that an engine can't have. Who doesn't touch DRAM doesn't wait for it; STORE waits for
    no bank, nor does GEMM: what waits is ALU, wherever it is executed."""
    roles = ring_of(config).roles
    away = {role.engine for role in roles if "dram" not in (*role.reads, *role.writes)}
    gemm_alone = {
        role.engine for role in roles if Gemm in role.executes and Alu not in role.executes
    }
    no_bank = {Engine.STORE, *gemm_alone}
    return {(engine, Cause.MEMORY) for engine in away} | {(e, Cause.BANK) for e in no_bank}


def causes(config: Config, outcome: Outcome) -> Iterator[str]:
    """The causes that took a cycle at least."""
    for engine, cause in product(engines(config), Cause):
        if outcome.causes[counter(engine, cause)]:
            yield f"causes: {engine.name} {cause.name}"


def in_flight(stream: Stream, outcome: Outcome) -> Iterator[str]:
    """Whether as many LOADs, as many STOREs have run at once as may."""
    for engine, most in ((Engine.LOAD, LOADS), (Engine.STORE, STORES)):
        rows = stream.engine(engine)
        start = outcome.start[rows][outcome.start[rows] >= 0]
        finish = np.sort(outcome.finish[rows][outcome.finish[rows] >= 0])
        level = np.arange(1, len(start) + 1) - np.searchsorted(finish, start)
        if np.any(level >= most):
            yield f"causes: {most} {engine.name}s in flight"


def token_goals(config: Config) -> Iterator[str]:
    """One token and a full queue in both directions, with waits; full where cases fill it."""
    levels = ["one", "waits for a token"]
    if config.token_queue <= MOST_TOKENS:
        levels += ["full", "waits for a slot"]
    for queue in ring_of(config).token_queues:
        yield from (f"{_name(queue)}: {level}" for level in levels)


def tokens(stream: Stream, outcome: Outcome) -> Iterator[str]:
    """The levels that queues have had.

    A slot is taken when the giver starts, and free again when the taker has started.
    """
    size = stream.config.token_queue
    for queue in ring_of(stream.config).token_queues:
        given = _flagged(stream, queue.giver, queue.push)
        taken = _flagged(stream, queue.taker, queue.pop)
        start, finish = outcome.start[given], outcome.finish[given]
        popped = outcome.start[taken]
        name = _name(queue)
        if np.any(finish >= 0):
            yield f"{name}: one"
        both = min(len(given), len(taken))
        if np.any((popped[:both] >= 0) & (popped[:both] == finish[:both] + 1)):
            yield f"{name}: waits for a token"
        starts, pops = start[start >= 0], np.sort(popped[popped >= 0])
        level = np.arange(1, len(starts) + 1) - np.searchsorted(pops, starts)
        if np.any(level >= size):
            yield f"{name}: full"
        later = min(len(start) - size, len(popped))
        if later > 0 and np.any(
            (popped[:later] >= 0) & (start[size : size + later] == popped[:later] + 1)
        ):
            yield f"{name}: waits for a slot"


def _name(queue: TokenQueue) -> str:
    return f"tokens: {queue.giver.name} → {queue.taker.name}"


def _flagged(stream: Stream, engine: Engine, flag: str) -> NDArray[np.int64]:
    rows = stream.engine(engine)
    result: NDArray[np.int64] = rows[stream.rows[rows, column(Load, flag)] != 0]
    return result  # every class has its flags in the same columns
