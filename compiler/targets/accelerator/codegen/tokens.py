"""Dependency tokens, derived from what instructions read and write.

For every instruction the pass finds, per other engine, the last instruction it must come after:
one that wrote what it reads or overwrites, or read what it overwrites. A token is placed only
where that isn't already known: through an earlier token, directly or by way of another engine.
What is known is kept as a vector clock per engine, so the tokens are as few as the data allows,
and each instruction gives and takes at most one per queue.

Queues are finite. Running the stream one by one never finds one full: where a token more would be
too many, the newest one waiting is given later instead, and covers both. Engines that run ahead of
that order can't deadlock either: an instruction that can start is never kept from it by another.

An engine may have to work alone: then each of its instructions comes after all before it, and each
behind it comes after it, whatever they read and write. With all engines alone no two work at once,
and the stream takes the time that it takes without latency hiding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vdla.compiler.targets.accelerator.codegen.accesses import Accesses, Numbers
from vdla.compiler.targets.accelerator.codegen.op import Op
from vdla.isa.config import Config
from vdla.isa.instructions import SIDES, Instruction, Load, Store
from vdla.isa.ring import Engine, ring_of
from vdla.sim.compiled import compiled, inline

NEVER = -1
WROTE, READ = 0, 1
MOST_LOOPS = 16  # around an access
Flags = NDArray[np.int8]  # [instruction, side]


def insert_tokens(
    ops: Sequence[Op],
    addresses: Mapping[str, int],
    dram_bytes: int,
    config: Config,
    alone: Collection[Engine] = (),
) -> list[Instruction]:
    """The stream with DRAM addresses and token flags in place.

    Args:
        ops: instructions in an order in which running them one by one is right.
        addresses: the byte address of every DRAM tensor.
        dram_bytes: the end of the highest tensor.
        config: the accelerator.
        alone: engines that work while no other one does.
    """
    touched = Accesses.of_ops(ops, addresses, dram_bytes, config)
    ring = ring_of(config)
    engines = np.array([ring.engine_of(op.instruction) for op in ops], np.int64)
    pops, pushes = place_tokens(engines, touched, config, alone)
    result = [_addressed(op, addresses) for op in ops]
    for verb, flags in (("pop", pops), ("push", pushes)):
        names = [f"{verb}_{side}" for side in SIDES]
        for place, side in np.argwhere(flags).tolist():
            result[place].__dict__[names[side]] = 1
    return result


def place_tokens(
    engines: Numbers, touched: Accesses, config: Config, alone: Collection[Engine] = ()
) -> tuple[Flags, Flags]:
    """The flags of each instruction: [n, side] whether it pops a token, and whether it pushes one.

    Args:
        engines: [n] who executes each instruction.
        touched: what each reads and writes.
        config: the accelerator.
        alone: engines that work while no other one does.
    """
    notes = _no_notes(len(engines), touched.entries)
    _place(engines, touched, _rules(config, alone), notes)
    return notes.pops, notes.pushes


def _addressed(op: Op, addresses: Mapping[str, int]) -> Instruction:
    """A copy of the op's instruction, its DRAM address absolute."""
    instruction = op.instruction.copy()
    if isinstance(instruction, Load | Store) and op.tensor:
        instruction.dram_base += addresses[op.tensor]
    return instruction


class _Rules(NamedTuple):
    """Who exchanges tokens with whom, and how many.

    ``neighbours`` are [engine, side], by their numbers or NEVER; ``queues``, ``push`` and ``pop``
    are [giver, taker]: the number of the queue, and the side of the flag at either end. ``alone``
    is [engine], ``limit`` the tokens that a queue holds.
    """

    neighbours: Numbers
    queues: Numbers
    push: Numbers
    pop: Numbers
    alone: Numbers
    limit: int


def _rules(config: Config, alone: Collection[Engine]) -> _Rules:
    ring, count = ring_of(config), len(Engine)
    neighbours = np.full((count, len(SIDES)), NEVER, np.int64)
    for engine in ring.engines:
        for number, other in enumerate(ring.neighbours(engine).values()):
            neighbours[engine, number] = other
    queues, push, pop = (np.zeros((count, count), np.int64) for _ in range(3))
    for number, queue in enumerate(ring.token_queues):
        ends = queue.giver, queue.taker
        queues[ends] = number
        push[ends], pop[ends] = SIDES.index(queue.side), SIDES.index(queue.back)
    by_itself = np.array([engine in alone for engine in sorted(Engine)], np.int64)
    return _Rules(neighbours, queues, push, pop, by_itself, config.token_queue)


class _Notes(NamedTuple):
    """Notes of the pass about the instructions so far.

    ``last`` is [entry, WROTE or READ, engine]: the last instruction of an engine that touched it,
    by its number among the engine's. ``places`` is [engine, number], ``issued`` [engine]. ``known``
    is [engine, other]: the last instruction of another engine that is known to have finished when
    the engine's next one starts; ``knew`` is [place, other], the same for those that have started.
    Of each token [queue, token], ``giver`` is its number among its engine's, ``taker`` a place.

    ``needs`` is [engine], of the instruction in hand: the last instructions that must have finished
    before. ``covers`` [side] and ``counters`` are room for what a loop counts.
    """

    last: NDArray[np.int32]
    places: Numbers
    issued: Numbers
    known: Numbers
    knew: Numbers
    giver: Numbers
    taker: Numbers
    tokens: Numbers
    pops: Flags
    pushes: Flags
    needs: Numbers
    covers: Numbers
    counters: Numbers


def _no_notes(count: int, entries: int) -> _Notes:
    """Notes before the first of ``count`` instructions."""
    kinds, sides = len(Engine), len(SIDES)
    queues = kinds * sides
    return _Notes(
        np.full((entries, 2, kinds), NEVER, np.int32),
        np.zeros((kinds, count), np.int64),
        np.zeros(kinds, np.int64),
        np.full((kinds, kinds), NEVER, np.int64),
        np.zeros((count, kinds), np.int64),
        np.zeros((queues, count), np.int64),
        np.zeros((queues, count), np.int64),
        np.zeros(queues, np.int64),
        np.zeros((count, sides), np.int8),
        np.zeros((count, sides), np.int8),
        np.zeros(kinds, np.int64),
        np.zeros(sides, np.int64),
        np.zeros(MOST_LOOPS, np.int64),
    )


@compiled("compiler")
def _place(engines: Numbers, touched: Accesses, rules: _Rules, notes: _Notes) -> None:
    """Fills ``notes.pops`` and ``notes.pushes``."""
    for place in range(len(engines)):
        engine = engines[place]
        _note_needs(notes, touched, rules, place, engine)
        _take_tokens(notes, rules, place, engine)
        number = notes.issued[engine]
        for access in range(touched.of[place], touched.of[place + 1]):
            _mark(notes, touched, access, engine, number)
        notes.places[engine, number] = place
        notes.issued[engine] = number + 1
        for other in range(len(notes.issued)):
            notes.knew[place, other] = notes.known[engine, other]


@inline
def _note_needs(notes: _Notes, touched: Accesses, rules: _Rules, place: int, engine: int) -> None:
    """Finds, per engine, what must have finished before the instruction at a place."""
    needs = notes.needs
    _fill(needs, NEVER)
    for access in range(touched.of[place], touched.of[place + 1]):
        _see(notes, touched, access)
    for other in range(len(needs)):
        if rules.alone[engine] or rules.alone[other]:
            needs[other] = notes.issued[other] - 1


@inline
def _take_tokens(notes: _Notes, rules: _Rules, place: int, engine: int) -> None:
    """The tokens that an instruction waits for, first those whose givers know the most."""
    neighbours, covers, needs = rules.neighbours[engine], notes.covers, notes.needs
    _fill(covers, NEVER)
    for side in range(len(neighbours)):
        if neighbours[side] != NEVER:
            covers[side] = _covers(notes, neighbours, neighbours[side])
    for _ in range(len(neighbours)):
        best = 0
        for side in range(len(neighbours)):
            if covers[side] > covers[best]:
                best = side
        if covers[best] == NEVER:
            return
        covers[best] = NEVER
        source = neighbours[best]
        if needs[source] > notes.known[engine, source]:
            _give(notes, rules, source, engine, place)


@inline
def _covers(notes: _Notes, neighbours: Numbers, other: int) -> int:
    """Number of engines covered, in what they must have done, by waiting for ``other``.

    Who covers another covers all that this one covers, so it counts more.
    """
    needs = notes.needs
    if needs[other] == NEVER:
        return 0
    knew, result = notes.knew[notes.places[other, needs[other]]], 0
    for each in neighbours:
        if each not in (NEVER, other) and knew[each] >= needs[each]:
            result += 1
    return result


@inline
def _give(notes: _Notes, rules: _Rules, source: int, engine: int, place: int) -> None:
    """A token from what an engine must have done to the instruction of another at a place."""
    number = notes.needs[source]
    queue, push = rules.queues[source, engine], rules.push[source, engine]
    giver, taker, tokens = notes.giver[queue], notes.taker[queue], notes.tokens[queue]
    from_place = notes.places[source, number]
    notes.pushes[from_place, push] = 1
    if tokens < rules.limit or taker[tokens - rules.limit] < from_place:
        notes.pops[place, rules.pop[source, engine]] = 1
        giver[tokens], taker[tokens] = number, place
        notes.tokens[queue] = tokens + 1
    else:
        notes.pushes[notes.places[source, giver[tokens - 1]], push] = 0
        giver[tokens - 1] = number
    known = notes.known[engine]
    for each in range(len(known)):
        known[each] = max(known[each], notes.knew[from_place, each])
    known[source] = max(known[source], number)


# Entries ----------------------------------------------------------------------------------------


@inline
def _see(notes: _Notes, touched: Accesses, access: int) -> None:
    """Raises what is needed to the last instructions that conflict with an access: writes, and for
    a write reads too."""
    last, needs, counters = notes.last, notes.needs, notes.counters
    low, high = touched.loops[access], touched.loops[access + 1]
    kinds = READ + 1 if touched.write[access] else WROTE + 1
    entry = touched.start[access]
    _fill(counters, 0)
    while entry != NEVER:
        for i in range(touched.extent[high - 1] if high > low else 1):
            at = entry + (i * touched.step[high - 1] if high > low else 0)
            for kind in range(kinds):
                for engine in range(len(needs)):
                    needs[engine] = max(needs[engine], last[at, kind, engine])
        entry = _next(touched, low, high, entry, counters)


@inline
def _mark(notes: _Notes, touched: Accesses, access: int, engine: int, number: int) -> None:
    """Notes an instruction at the entries of an access."""
    last, counters = notes.last, notes.counters
    low, high = touched.loops[access], touched.loops[access + 1]
    kind = WROTE if touched.write[access] else READ
    entry = touched.start[access]
    _fill(counters, 0)
    while entry != NEVER:
        for i in range(touched.extent[high - 1] if high > low else 1):
            last[entry + (i * touched.step[high - 1] if high > low else 0), kind, engine] = number
        entry = _next(touched, low, high, entry, counters)


@inline
def _next(touched: Accesses, low: int, high: int, entry: int, counters: Numbers) -> int:
    """Entry at which the innermost loop of an access begins next; NEVER behind the last."""
    loop = high - 2
    while loop >= low:
        extent, step = touched.extent[loop], touched.step[loop]
        if counters[loop - low] + 1 < extent:
            counters[loop - low] += 1
            return int(entry + step)
        entry -= counters[loop - low] * step
        counters[loop - low] = 0
        loop -= 1
    return NEVER


@inline
def _fill(numbers: Numbers, value: int) -> None:
    for i in range(len(numbers)):
        numbers[i] = value
