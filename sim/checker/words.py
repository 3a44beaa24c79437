"""Findings of the compiled pass, in words: conflicts, deadlock, tokens left over."""

from __future__ import annotations

import numpy as np

from vdla.isa.instructions import Load
from vdla.isa.ring import Engine, TokenQueue, engines, ring_of
from vdla.sim.checker.finding import Finding, line_of, name_of
from vdla.sim.checker.tables import (
    COMPUTED,
    DRAM,
    INDEX_RANGE,
    MEMORIES,
    READ,
    STREAM,
    UOP_RANGE,
    WRITE,
)
from vdla.sim.checker.tokens import token_limit
from vdla.sim.stream import Rows, Stream, column


def describe(stream: Stream, raw: Rows) -> Finding:
    """A raw finding."""
    kind, index, engine, number, memory, entry, theirs, ours = map(int, raw)
    name = name_of(stream, index)
    if kind in (INDEX_RANGE, UOP_RANGE):
        depth = stream.config.uop_depth
        if kind == INDEX_RANGE:
            depth = stream.config.depth(MEMORIES[memory].lower())
        what = "micro-ops" if kind == UOP_RANGE else f"indices of {MEMORIES[memory]}"
        text = f"{name}: expected {what} below {depth}, found {entry}; {line_of(stream, index)}"
        return Finding("range", index, text)
    place = _place(stream, memory, entry)
    if kind == STREAM:
        text = f"{name} writes {place}, which lies in the instruction stream that fetch reads"
        return Finding("conflict", index, f"{text}; {line_of(stream, index)}")
    other = int(stream.engine(Engine(engine))[number - 1])
    if kind == COMPUTED:
        text = f"{name} loads micro-ops from {place} that {name_of(stream, other)} writes: they are"
        return Finding("uop", index, f"{text} not known before the run; {line_of(stream, index)}")
    accesses = {index: ours, other: theirs}
    return Finding("conflict", index, _conflict_text(stream, accesses, place))


def _place(stream: Stream, memory: int, entry: int) -> str:
    if memory == DRAM:
        return f"DRAM[{entry * stream.config.port_bytes:#x}]"
    return f"{MEMORIES[memory]}[{entry}]"


def _conflict_text(stream: Stream, accesses: dict[int, int], place: str) -> str:
    """Names both instructions, and the flags that would order them as the program has them."""
    first, second = sorted(accesses)
    one, two = name_of(stream, first), name_of(stream, second)
    ring = ring_of(stream.config)
    before, after = (ring.engine_of(stream.instructions[index]) for index in (first, second))
    verb = "writes" if accesses[second] == WRITE else "reads"
    yet = "may still read" if accesses[first] == READ else "may not have written yet"
    queue = ring.token_queue(before, after)
    return (
        f"{two} {verb} {place} that {one} {yet}: no token from {before.name} orders them; "
        f"{one} would {queue.push} and {two} {queue.pop}; {line_of(stream, first)}; "
        f"{line_of(stream, second)}"
    )


def describe_tokens(stream: Stream, started: Rows) -> list[Finding]:
    """Deadlock, when instructions are left; otherwise tokens left in a queue."""
    if started.sum() == len(stream.instructions) - 1:
        return _leftovers(stream)
    heads = {engine: _reached(stream, engine, started) for engine in engines(stream.config)}
    blocked = _undispatched(stream, started)
    end = len(stream.instructions) if blocked is None else blocked  # of what was dispatched
    result = []
    for engine, head in heads.items():
        if head < end:
            reasons = "; ".join(_lacks(stream, head, started))
            text = f"deadlock: {engine.name} stands at {name_of(stream, head)}: {reasons}"
            result.append(Finding("deadlock", head, f"{text}; {line_of(stream, head)}"))
    if blocked is not None:
        engine = ring_of(stream.config).engine_of(stream.instructions[blocked])
        size, first = stream.config.command_queue, name_of(stream, heads[engine])
        text = f"deadlock: {name_of(stream, blocked)} is never dispatched: {engine.name}'s queue of"
        text += f" {size} is full, with {first} first"
        result.append(Finding("deadlock", blocked, f"{text}; {line_of(stream, blocked)}"))
    return result


def _undispatched(stream: Stream, started: Rows) -> int | None:
    """The instruction at which fetch stands because a command queue is full."""
    ring = ring_of(stream.config)
    issued = dict.fromkeys(ring.engines, 0)
    for index, each in enumerate(stream.instructions[:-1]):
        engine = ring.engine_of(each)
        if issued[engine] - started[engine] >= stream.config.command_queue:
            return index
        issued[engine] += 1
    return None


def _lacks(stream: Stream, head: int, started: Rows) -> list[str]:
    """The tokens and slots that an instruction can't start without."""
    each, ring = stream.instructions[head], ring_of(stream.config)
    engine = ring.engine_of(each)
    limit, reasons = token_limit(stream, stream.config), []
    for other in ring.neighbours(engine).values():
        queue = ring.token_queue(other, engine)
        pushers, poppers = _ends(stream, queue)
        taken = int(np.searchsorted(poppers, head))
        given = int(np.searchsorted(pushers, _reached(stream, other, started)))
        if getattr(each, queue.pop) and given <= taken:
            source = "no instruction gives"
            if taken < len(pushers):
                source = f"{name_of(stream, int(pushers[taken]))} would give"
            reasons.append(f"the token it pops from {other.name} is one that {source}")
    for other in ring.neighbours(engine).values():
        queue = ring.token_queue(engine, other)
        pushers, poppers = _ends(stream, queue)
        given = int(np.searchsorted(pushers, head))
        taken = int(np.searchsorted(poppers, _reached(stream, other, started)))
        if getattr(each, queue.push) and given - taken >= limit:
            reasons.append(f"the queue it pushes to {other.name} holds {limit} tokens, all taken")
    return reasons


def _leftovers(stream: Stream) -> list[Finding]:
    """Tokens that are pushed more often than popped."""
    result = []
    for queue in ring_of(stream.config).token_queues:
        pushers, poppers = _ends(stream, queue)
        for index in map(int, pushers[len(poppers) :]):
            text = f"{name_of(stream, index)} {queue.push}: {queue.taker.name} pops {len(poppers)}"
            text += f" tokens of {len(pushers)}, and never this one; {line_of(stream, index)}"
            result.append(Finding("leftover", index, text))
    return result


def _ends(stream: Stream, queue: TokenQueue) -> tuple[Rows, Rows]:
    """The instructions that push to a token queue, and those that pop from it."""
    pushers = _flagged(stream, queue.giver, queue.push)
    return pushers, _flagged(stream, queue.taker, queue.pop)


def _flagged(stream: Stream, engine: Engine, flag: str) -> Rows:
    """An engine's instructions that have a token flag."""
    indices = stream.engine(engine)
    flagged: Rows = indices[stream.rows[indices, column(Load, flag)] != 0]
    return flagged


def _reached(stream: Stream, engine: Engine, started: Rows) -> int:
    """The index of the first instruction that an engine hasn't started."""
    indices = stream.engine(engine)
    count = int(started[engine])
    return int(indices[count]) if count < len(indices) else len(stream.instructions)
